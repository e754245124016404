"""What peer_torch.py and peer_jax.py share: the times of a session's steps as a row of the answer."""
import math
import time


def times_of(session, request, mode, wait):
    """`session` has step() and value(); wait() returns when all steps that were given have ended."""
    started, values = time.perf_counter(), []
    for i in range(request["compared"]):
        session.step()
        values.append(session.value())
        if i == 0:
            first_ms = (time.perf_counter() - started) * 1e3
    started = time.perf_counter()
    session.step()
    wait()
    each = max(time.perf_counter() - started, 1e-6)
    steps, ms = min(max(int(request["seconds"] / request["repeats"] / each), 1), 2000), []
    for _ in range(request["repeats"]):
        started = time.perf_counter()
        for _ in range(steps):
            session.step()
        wait()
        ms.append((time.perf_counter() - started) * 1e3 / steps)
    return {"mode": mode, "ms": ms, "values": [v if math.isfinite(v) else None for v in values], "first_ms": first_ms}


def row_of(measure, mode):
    """measure()'s row, or what its library threw."""
    try:
        return measure()
    except Exception as error:  # whatever the library throws becomes a row
        return {"mode": mode, "error": f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"}
