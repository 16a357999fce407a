"""What a class says of a method that it has, or that another class gave it."""

from __future__ import annotations


def said_of(cls: type, name: str, method: str) -> bool:
    """Whether this name was given to the method that the class has. One that a derived class has instead may do
    something else."""
    for each in cls.__mro__:
        if name in vars(each):
            return True
        if method in vars(each):
            return False
    return False
