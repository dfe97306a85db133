# The rules of policies.yaml, for the generated Deployments.
package main

containers contains container if {
	input.kind == "Deployment"
	some container in input.spec.template.spec.containers
}

deny contains sprintf("%s: the image has no tag", [container.name]) if {
	some container in containers
	not regex.match(`:[^/:]+$`, container.image)
}

deny contains sprintf("%s: the image has the tag latest", [container.name]) if {
	some container in containers
	endswith(container.image, ":latest")
}

deny contains sprintf("%s: limits are missing", [container.name]) if {
	some container in containers
	limits := object.get(container, ["resources", "limits"], {})
	count({"cpu", "memory"} - object.keys(limits)) > 0
}

deny contains sprintf("%s: may run as root", [container.name]) if {
	some container in containers
	object.get(container, ["securityContext", "runAsNonRoot"], false) != true
	object.get(input.spec.template.spec, ["securityContext", "runAsNonRoot"], false) != true
}

deny contains sprintf("%s: is privileged", [container.name]) if {
	some container in containers
	object.get(container, ["securityContext", "privileged"], false) == true
}

deny contains sprintf("%s: its root file system can be written", [container.name]) if {
	some container in containers
	object.get(container, ["securityContext", "readOnlyRootFilesystem"], false) != true
}
