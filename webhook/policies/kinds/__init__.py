"""The rules of Gatewright's own kinds: in force where no policy set names them."""
