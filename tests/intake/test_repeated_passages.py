"""What was pasted twice is read once, whatever it is."""

from envdoctor.intake import parse_report
from envdoctor.intake.clean_text import clean_lines

PASSAGE = "".join(f"package-{number}==1.{number}\n" for number in range(40))


def numbers(text):
    return [line.number for line in clean_lines(text)]


def test_a_long_text_of_repeated_passages_costs_one_of_them():
    """A passage that is repeated a hundred times: both ends of the repetition are read again."""
    once = len(numbers(PASSAGE))
    assert len(numbers(PASSAGE * 100)) <= once + 16


def test_what_is_new_beside_a_repeated_passage_is_read_with_its_surroundings():
    text = f"{PASSAGE}{PASSAGE}torch==2.6.0\n"
    assert numbers(text)[-8:] == list(range(74, 82))
    assert parse_report(text).value("distributions")["torch"].version == "2.6.0"


def test_equal_devices_are_no_repeated_passage():
    text = "index, name\n" + "".join(f"{index}, NVIDIA L40S\n" for index in range(8))
    assert len(parse_report(text).value("gpus")) == 8
    assert len(numbers("NVIDIA L40S\n" * 64)) == 64


def test_a_command_of_many_lines_is_read_whole():
    options = "".join(f"  --env A{number}=1 \\\n" for number in range(40))
    command = f"docker run \\\n{options}  --shm-size 8g image:1\n"
    lines = [line.text for line in clean_lines(command * 2)]
    assert len(lines) == 2
    assert lines[0] == lines[1]
