"""The page of results is written by several programs, each its own sections: from a line `## NAME` to the next."""
import re


def split(page):
    """What stands before the first section, and the sections in their order: {heading: text with its heading}."""
    parts = re.split(r"^(?=## )", page, flags=re.MULTILINE)
    return parts[0], {part.splitlines()[0]: part.rstrip("\n") + "\n" for part in parts[1:]}


def replaced(page, text):
    """The page with this section in the place of the one with the same heading, else at the end."""
    begin, sections = split(page)
    sections[text.splitlines()[0]] = text.rstrip("\n") + "\n"
    return "\n".join([begin.rstrip("\n") + "\n", *sections.values()])


def write(path, text):
    """The same in the file."""
    path.write_text(replaced(path.read_text(encoding="utf-8"), text), encoding="utf-8")


def carried_over(page, old):
    """The page with what the old one has beyond it."""
    for heading, text in split(old)[1].items():
        if heading not in split(page)[1]:
            page = replaced(page, text)
    return page


def table(head, rows):
    rows = [head, *rows]
    widths = [max(len(row[i]) for row in rows) for i in range(len(head))]
    lines = ["| " + " | ".join(cell.ljust(width) for cell, width in zip(row, widths)) + " |" for row in rows]
    return "\n".join([lines[0], "|" + "|".join("-" * (width + 2) for width in widths) + "|", *lines[1:]]) + "\n"
