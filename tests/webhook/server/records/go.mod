module gatewright/records

go 1.21
