"""What the application needs of the outside, as Protocols. Imports the domain.

Every method of `LocalStore`, `ControlPlane`, `CommandStream`, `FileSpace`, `StepStore` and
`Effects` that does I/O is asynchronous and is one operation: a caller may put a wrapper around a
port that orders, delays or fails operations. A transaction is one method.
"""
