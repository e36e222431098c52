"""Chats of other programs: finds them, reads them, and turns them into values of `model`. Opens files only to read
them, takes over no configuration, and knows neither chats nor the store here.
"""
