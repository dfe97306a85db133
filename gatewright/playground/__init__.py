"""A page that judges an object while it is typed.

`draft` is what the page sends and the verdict on it, `kubectl` the words of kubectl, `case` a test
case of it; `server` serves them with page.html and examples.json, which `make manifests` writes.
"""
