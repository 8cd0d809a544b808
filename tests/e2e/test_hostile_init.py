"""What comes in cerco-init's place from a kernel that was taken over: it tells nobody anything false that could be seen
to be so, and holds nobody up."""
# lane: full
import json
import pathlib
import shutil
import subprocess

import pytest

from cerco import BUILD, Cerco

SOURCE = pathlib.Path(__file__).with_name("hostile_init.c")


class Changed(Cerco):
    """A cerco whose cerco-init is another program; the container's path is the same as every tier's."""

    def __init__(self, folder, act):
        super().__init__(folder)
        self.programs = folder / "programs"
        self.programs.mkdir()
        for program in BUILD.glob("cerco*"):
            if program.is_file() and program.name not in ("cerco", "cerco-init"):
                (self.programs / program.name).symlink_to(program)
        shutil.copy(BUILD / "cerco", self.programs / "cerco")
        subprocess.run(["cc", "-static", "-O1", f'-DACT="{act}"', "-o", self.programs / "cerco-init", SOURCE], check=True)

    def command(self, *args, program="cerco"):
        return [str(self.programs / program), *super().command(*args, program=program)[1:]]


def test_the_program_is_taken_for_cerco_init(tmp_path):
    """The positive control: what it says is believed where it makes sense."""
    done = Changed(tmp_path, "true").run("--out", tmp_path / "out", "--", "true")
    assert done.status == 0 and done.report["ending"]["kind"] == "exited", done


@pytest.mark.parametrize("act", ["status", "signal", "time", "step", "never"])
def test_words_that_make_no_sense_end_the_sandbox(tmp_path, act):
    """A status of 256 was 0 for a shell, and a time of 2^64 ms kept run.ended out of the journal."""
    done = Changed(tmp_path, act).run("--", "true")
    assert done.status == 137, done
    assert done.report["ending"]["kind"] == "killed" and "protocol" in done.report["ending"]["by"], done
    assert done.report["status"] == 137 and done.report["usage"]["cpu_ms"] < 2**53
    assert len(done.of_type("run.ended")) == 1
    assert [event["detector"] for event in done.of_type("alert")] == ["broke_protocol"]
    assert "\033" not in json.dumps(done.events) + done.error


def test_endless_words_do_not_hold_up_the_end(tmp_path):
    done = Changed(tmp_path, "words").run("--timeout", "2s", "--out", tmp_path / "out", "--", "true")
    assert done.report["ending"]["kind"] == "exited", done
    assert len(done.of_type("run.ended")) == 1
