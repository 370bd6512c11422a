"""Answer the question of `benchmarks.serving` with SimPy; runs in its own environment, JSON in and out.

It is a server as a SimPy user would write it: a process of arrivals, and a process that prefills the oldest
waiting request if a slot is free and otherwise decodes a token for every sequence. Each step is a timeout. It
has no blocks and no percentiles.
"""

import json
import sys
import time
from collections import deque

import simpy


def play(rows: list[list], slots: int, cost: dict) -> tuple[float, int]:
    """Return the time at which the last request finishes, and the number of tokens."""
    env, waiting, batch, done = simpy.Environment(), deque(), [], [0, 0]
    state = {"wake": env.event(), "end_s": 0.0}
    weights_s, token_s, cached_s = cost["weights_s"], cost["token_s"], cost["cached_s"]

    def step_s(decodes: int, kv_tokens: int, chunk: int = 0) -> float:
        return max(weights_s, token_s * (decodes + chunk)) + cached_s * kv_tokens + cost["fixed_s"]

    def arrivals():
        for arrival_s, prompt, output in rows:
            yield env.timeout(arrival_s - env.now)
            waiting.append([prompt, output])
            if not state["wake"].triggered:
                state["wake"].succeed()

    def server():
        while done[0] < len(rows):
            if waiting and len(batch) < slots:
                request = waiting.popleft()
                yield env.timeout(step_s(0, 0, request[0]))
                request[1] -= 1
                done[1] += 1
                batch.append(request)
            elif batch:
                yield env.timeout(step_s(len(batch), sum([request[0] for request in batch])))
                done[1] += len(batch)
                for request in batch:
                    request[0] += 1
                    request[1] -= 1
            else:
                state["wake"] = env.event()
                yield state["wake"]
            left = [request for request in batch if request[1]]
            done[0] += len(batch) - len(left)
            batch[:] = left
        state["end_s"] = env.now

    env.process(arrivals())
    env.process(server())
    env.run()
    return state["end_s"], done[1]


if __name__ == "__main__":
    asked = json.load(sys.stdin)
    took = []
    for _ in range(asked["rounds"]):
        since = time.process_time()
        end_s, tokens = play(asked["rows"], asked["slots"], asked["cost"])
        took.append(1e3 * (time.process_time() - since))
    print(json.dumps({"ms": took, "end_s": end_s, "tokens": tokens}))
