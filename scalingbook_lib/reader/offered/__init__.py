"""Which chips, machines and models do explorers offer?"""
