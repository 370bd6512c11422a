"""How does a notebook show explorers, figures and tables?"""
