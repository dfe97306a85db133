"""A page that judges an object while it is typed.

`draft` judges the texts that the page sends, `kubectl` writes kubectl's output, and `case` writes a
test case; `server` serves them with page.html and with examples.json, which `make manifests`
writes.
"""
