"""One experiment: its protocol, its lane, and the sharing of equal states around it."""
