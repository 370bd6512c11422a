"""The programs behind the page "Predicted and compiled", and their predictions.

`cases` lists the programs. `serving` is one kind of program, a Transformer of any structure. `facts` gets the
compiler's output for `data/compiled_programs.json`, `beside` compares predictions with it, and `tables`
formats both.
"""
