"""What is compiled for the page "Predicted and compiled", and what is predicted of it?

`cases` has the programs; `serving` is one of them, a Transformer of any structure that reads or writes;
`facts` asks the compiler, for `data/compiled_programs.json`; `beside` sets predictions beside that, `tables`
tells both.
"""
