"""The web's conventions, with no word of our domain: every feature imports this room, it imports none."""
