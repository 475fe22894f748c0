"""What a training or inference run will need, before it starts: the script that launches it is
read, its memory is calculated.
"""
