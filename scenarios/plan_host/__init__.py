"""A small host around the checkpoint kernel, to show what each of its rules is for.

It has no coordinator and no network: commands come with the site, a step's effect is one line in
the effect ledger, and the host ends when nothing is left. What goes slow and what fails is part of
its wiring, so that a fault that needs an unlucky moment has it in every run.
"""
