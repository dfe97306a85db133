"""The engine, module by module, with policies made for the test."""
