"""How do views look with matplotlib, and how do explorers move in a notebook?"""
