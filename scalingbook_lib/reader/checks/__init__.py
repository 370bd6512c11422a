"""How is an answer judged, and what went wrong with it?"""
