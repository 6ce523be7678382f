"""A small host around the checkpoint kernel, to show what each of its rules is for.

It has no coordinator and no network: commands come with the site, a step's effect is one line in
the effect ledger, and the host ends when nothing is left. What goes slow and what fails is in
the plan of its faults, so that a bug that needs an unlucky moment has it in every run.
"""
