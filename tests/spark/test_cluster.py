"""Speculation, which Spark does between hosts only: a cluster of two host names on this machine, on request.

``DPTEXT_CLUSTER=1 python -m pytest tests/spark/test_cluster.py``: some minutes, and six Java machines.
"""

import os
import shutil
import subprocess
import sys
import time
from contextlib import ExitStack, contextmanager

import pytest

pytestmark = pytest.mark.skipif(os.environ.get("DPTEXT_CLUSTER") != "1", reason="asked for by DPTEXT_CLUSTER=1")
MASTER = "spark://127.0.0.1:7177"
SCRIPT = """
import sys, time
from pyspark.sql import SparkSession
builder = SparkSession.builder.master("{master}")
for name, value in {{
    "ui.enabled": "false", "driver.host": "127.0.0.1", "executor.memory": "600m", "executor.cores": "2",
    "sql.shuffle.partitions": "4", "speculation": "true", "speculation.multiplier": "1.1",
    "speculation.quantile": "0.3", "speculation.interval": "200ms", "speculation.minTaskRuntime": "500ms",
}}.items():
    builder = builder.config("spark." + name, value)
spark = builder.getOrCreate()
import dptext, dptext.spark.frames
mechanism = dptext.TEM(dptext.load_vectors("glove-6b-50d", limit=300), epsilon=3.0)
rows = [(f"the doctor of town {{n % 7}} said it is fine", n) for n in range(400)]
frame = spark.createDataFrame(rows, "text string, n int")
release = dptext.spark.frames.privatize(frame, mechanism, id="n", keep=["n"])
once = sorted(map(tuple, release.df.collect()))

def slow(batches):
    from pyspark import TaskContext
    context = TaskContext.get()
    with open("attempts", "a") as log:
        log.write(f"{{context.partitionId()}} {{context.attemptNumber()}}\\n")
    for batch in batches:
        if (context.partitionId(), context.attemptNumber()) == (1, 0):
            time.sleep(90)
        yield batch

release.df.mapInArrow(slow, release.df.schema).write.parquet("out.parquet")
print("attempts", sorted(set(open("attempts").read().split("\\n"))))
print("equal", len(once) == 400 and sorted(map(tuple, spark.read.parquet("out.parquet").collect())) == once)
spark.stop()
"""


@contextmanager
def running(script, *arguments, cwd):
    command = [os.path.join(os.environ["SPARK_HOME"], "bin", "spark-class"), f"org.apache.spark.deploy.{script}"]
    process = subprocess.Popen([*command, *arguments], cwd=cwd, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    time.sleep(15)  # there is no signal that it is ready
    try:
        yield
    finally:
        process.terminate()
        process.wait()


def test_a_rival_attempt_on_another_node_writes_the_same_rows_and_each_is_there_once(tmp_path, monkeypatch):
    pyspark = pytest.importorskip("pyspark")
    if shutil.which("java") is None:
        pytest.skip("Spark needs Java")
    monkeypatch.setenv("SPARK_HOME", os.path.dirname(pyspark.__file__))
    monkeypatch.setenv("SPARK_WORKER_DIR", str(tmp_path / "work"))
    monkeypatch.setenv("PYSPARK_PYTHON", sys.executable)
    (tmp_path / "script.py").write_text(SCRIPT.format(master=MASTER))
    with ExitStack() as cluster:
        cluster.enter_context(running("master.Master", "--host", "127.0.0.1", "--port", "7177", cwd=tmp_path))
        for host in ("127.0.0.1", "127.0.0.2"):
            worker = ("--host", host, "--cores", "2", "--memory", "1g", MASTER)
            cluster.enter_context(running("worker.Worker", *worker, cwd=tmp_path))
        done = subprocess.run([sys.executable, "script.py"], cwd=tmp_path, capture_output=True, text=True, timeout=500)
    assert done.returncode == 0, done.stderr
    assert "'1 1'" in done.stdout, "there was no rival"
    assert "equal True" in done.stdout
