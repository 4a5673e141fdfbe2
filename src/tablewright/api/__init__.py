"""The public face: pylance's names, handing over to the rooms below."""
