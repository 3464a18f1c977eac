"""Oban for Python. Arguments: setup | enqueue N KEYS MS | pace LOG FIRST N GAP_MS | work LOG SLOTS VARIANT. The database is in DATABASE_URL."""

import asyncio
import os
import signal
import sys

import oban.schema
from job_log import JobLog, enqueue, pace
from oban import Oban, worker

MODE, *REST = sys.argv[1:]
log = None


@worker(queue="jobs")
class Noop:
    async def process(self, job):
        await log.run(job.args["n"], job.args["ms"])


async def main():
    global log
    pool = await Oban.create_pool(os.environ["DATABASE_URL"])
    if MODE == "setup":
        await oban.schema.install(pool)
    elif MODE == "work":
        log = JobLog(REST[0])
        stop = asyncio.Event()
        asyncio.get_running_loop().add_signal_handler(signal.SIGTERM, stop.set)
        async with Oban(pool=pool, queues={"jobs": int(REST[1])}):
            await stop.wait()
    else:
        async with Oban(pool=pool) as client:
            if MODE == "enqueue":
                await enqueue(lambda jobs: client.enqueue_many([Noop.new(job) for job in jobs]), *map(int, REST))
            else:
                await pace(lambda job: client.enqueue(Noop.new(job)), JobLog(REST[0]), *map(int, REST[1:]))
    await pool.close()


asyncio.run(main())
