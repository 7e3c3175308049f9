"""The table in docs/brokers.md says what the brokers say. With --write it is written again."""

import os
import re
import sys

WRITE = "--write" in sys.argv
if WRITE:
    sys.argv.remove("--write")

import command
import database_servers
import rabbitmq_node
import running_server

PAGE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..", "docs", "brokers.md")
TABLE = re.compile(r"(?<=<!-- table -->\n).*?(?=<!-- end -->)", re.S)


def rows_of(page):
    """(heading, {capability: {column: yes or no}})"""
    lines = [[cell.strip() for cell in line.strip("|").split("|")] for line in TABLE.search(page).group(0).splitlines()]
    headings = lines[0][1:-1]
    return headings, {line[0].strip("`"): dict(zip(headings, line[1:-1])) for line in lines[2:]}


class CapabilitiesTest(command.CommandTest):
    def brokers(self):
        """Column -> URL, of those that this machine has."""
        self.bide("enqueue", "a", "b", "--url", "bide:./data")
        server = running_server.RunningServer(command.BIDE, self.folder, "--url", "bide:./served").start()
        self.addCleanup(server.end)
        found = {"`bide:`": "bide:./data", "`http:`": server.url}
        if rabbitmq_node.is_installed():
            node = rabbitmq_node.RabbitmqNode()
            self.addCleanup(node.stop)
            found["`amqp:`"] = node.url
        for column, kind in (("`redis:`", database_servers.Redis), ("`postgres:`", database_servers.Postgres),
                             ("`mysql:`", database_servers.Mariadb)):
            if kind.is_installed():
                database = kind()
                self.addCleanup(database.stop)
                found[column] = database.url
        return found

    def test_the_table_says_what_the_brokers_say(self):
        brokers = self.brokers()
        can = {column: self.bide_json("capabilities", "--url", url)["brokers"][0]["can"]
               for column, url in brokers.items()}
        names = [name for name, value in can["`bide:`"].items() if isinstance(value, bool) and name != "virtual_time"]
        with open(PAGE, encoding="utf-8") as file:
            page = file.read()
        if WRITE:
            texts = {line.split()[0]: re.split(r"  +", line)[-1]
                     for line in self.bide("capabilities", "--url", "bide:./data").splitlines() if line.strip()}
            table = "| | " + " | ".join(can) + " | |\n|---" + "|---" * (len(can) + 1) + "|\n"
            for name in names:
                cells = " | ".join("yes" if can[column].get(name) else "-" for column in can)
                table += f"| `{name}` | {cells} | {texts[name]} |\n"
            page = TABLE.sub(lambda _: table, page)
            with open(PAGE, "w", encoding="utf-8") as file:
                file.write(page)
        headings, rows = rows_of(page)
        self.assertEqual(sorted(rows), sorted(names))
        for column in can:
            self.assertIn(column, headings)
            for name in names:
                if (column, name) == ("`amqp:`", "priorities"):
                    continue  # By the version of the server.
                self.assertEqual(rows[name][column], "yes" if can[column].get(name) else "-", f"{name} of {column}")


if __name__ == "__main__":
    command.main()
