"""docs/limits.md says what the program does: the settings of a store, the limits of a job, and the defaults of both."""

import os
import re

import command

ROOT = os.path.join(os.path.dirname(__file__), "..", "..")


def read(path):
    with open(os.path.join(ROOT, path), encoding="utf-8") as file:
        return file.read()


def number(text):
    """64ull << 20, 16 * 1024, 3'600'000, {0}"""
    text = re.sub(r"(?<=\d)(ull|ul|u)\b", "", text.replace("'", "").strip("{} "))
    left, *shift = text.split("<<")
    value = 1
    for factor in left.split("*"):
        value *= int(factor)
    return value << int(shift[0]) if shift else value


def table(page, heading):
    """{first cell: second cell} of the first table below the heading."""
    rows = re.findall(r"^\| (.*?) \| (.*?) \|", page.split(f"## {heading}\n")[1].split("\n## ")[0].split("What cannot be set")[0], re.M)
    return {re.sub(r"^`(\w+)`$", r"\1", first): second for first, second in rows[1:]}


class LimitsTest(command.CommandTest):
    page = read("docs/limits.md")

    def test_the_settings_of_a_store_are_those_there_are(self):
        documented = table(self.page, "A store")
        _, _, error = self.run_bide("enqueue", "k", "--url", "bide:data?unknown=1")
        self.assertEqual(re.search(r"known are ([\w, ]+)", error)[1].split(", "), list(documented))
        options = read("src/engine/options.h")
        for name, default in documented.items():
            found = re.search(rf"\b{name}\s*(?:=\s*([^;]+)|(\{{[^}}]*\}}));", options)
            if name == "durability":
                self.assertEqual((default, found[1]), ("`fsync`", "Durability::kFsync"))
                continue
            actual = number(found[1] or found[2])
            unit = {"h": 3_600_000, "s": 1000}.get(default.strip("`")[-1])
            wanted = int(default.strip("`")[:-1]) * unit if unit else int(default.strip("`"))
            self.assertEqual(actual, wanted, name)

    def test_the_limits_of_a_job_are_those_there_are(self):
        limits = dict(re.findall(r"constexpr \S+ (k\w+) = ([^;]+);", read("include/bide/job.h").split("struct Limits")[1]))
        documented = table(self.page, "A job")
        for row, name, factor in (("name of a queue, kind or worker", "kNameBytes", 1), ("body", "kBodyBytes", 1 << 20),
                                  ("headers, names and values together", "kHeaderBytes", 1 << 10),
                                  ("unique key", "kUniqueKeyBytes", 1), ("group", "kGroupBytes", 1),
                                  ("errors kept", "kHistory", 1), ("text of an error", "kErrorBytes", 1),
                                  ("ids in `after`", "kAfter", 1), ("results of steps", "kSteps", 1)):
            said = int(re.search(r"\d+", documented[row])[0]) * factor
            self.assertEqual(said, number(limits[name]), row)

    def test_the_limits_of_a_server_are_those_there_are(self):
        limits = dict(re.findall(r"std::\S+ (\w+) = ([^;]+);", read("src/server/http/limits.h")))
        for name, said in table(self.page, "A server").items():
            amount, unit = re.match(r"([\d ]+?) ?(KiB|MiB|)(?:,|$)", said).groups()
            factor = {"KiB": 1 << 10, "MiB": 1 << 20, "": 1}[unit]
            self.assertEqual(int(amount.replace(" ", "")) * factor, number(limits[name]), name)


if __name__ == "__main__":
    command.main()
