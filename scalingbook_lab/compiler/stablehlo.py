"""Compile a StableHLO module (`jax.jit(f).lower(x).as_text()`) for a TPU slice or for this machine."""

import math
from collections.abc import Mapping

from scalingbook_lab import devices
from scalingbook_lab.compiler.user_program import ProgramError
from scalingbook_lib.hlo import out_of_memory
from scalingbook_lib.inspection import stablehlo
from scalingbook_lib.inspection.source import MemoryUse, ProgramSource, platform_of

WITHOUT_LOCATIONS = (
    "the text names neither arguments nor lines of Python; write it with lowered.as_text(debug_info=True)"
)


def compile_module(
    text: str, *, slice_name: str = "", mesh: Mapping[str, int] | None = None
) -> ProgramSource:
    """Compile a module's text for the devices of its mesh.

    Raises a ProgramError if the text cannot be parsed or this version of JAX cannot compile it, and
    DoesNotFit if the memory is too small.
    """
    sizes = dict(mesh or stablehlo.mesh(text))
    if not slice_name:
        devices.simulate(math.prod(sizes.values()))
    from scalingbook_lab.compiler import aot

    sizes = sizes or {"X": 1}
    on = aot.mesh_for(slice_name or None, sizes)
    chosen = tuple(on.devices.flat)
    compiled, usage = _compile(text, chosen, load=not slice_name)
    return ProgramSource(
        text=compiled,
        mesh=sizes,
        machine=slice_name,
        platform=str(chosen[0].platform) if not slice_name else platform_of(compiled) or "tpu",
        arguments=stablehlo.arguments(text, sizes),
        memory=usage,
        notes=() if "loc(" in text else (WITHOUT_LOCATIONS,),
    )


def _compile(text: str, chosen: tuple, *, load: bool) -> tuple[str, MemoryUse]:
    """The compiled text and its memory; JAX has no public function for it."""
    import numpy as np

    try:
        from jax._src import compiler
        from jax._src.interpreters import mlir
        from jaxlib import xla_client
        from jaxlib.mlir import ir
    except ImportError as error:
        raise ProgramError(
            f"this version of JAX cannot compile a StableHLO text ({error}); compile it where it was "
            "made, and "
            "inspect compiled.as_text()"
        ) from error
    with mlir.make_ir_context():
        try:
            module = ir.Module.parse(text)
        except Exception as error:
            raise ProgramError(
                f"the StableHLO text cannot be parsed: {' '.join(str(error).split())[:300]}"
            ) from error
        ids = np.array([[device.id for device in chosen]])
        options = compiler.get_compile_options(1, len(chosen), device_assignment=ids)
        listed = xla_client.DeviceList(chosen)
        backend = chosen[0].client
        try:
            if load:
                program = compiler.backend_compile_and_load(backend, module, listed, options, [])
            else:
                program = backend.compile(module, listed, options)
        except Exception as error:
            if (too_large := out_of_memory.read(str(error))) is not None:
                raise too_large from None
            raise ProgramError(
                f"XLA does not compile the module: {' '.join(str(error).split())[:400]}"
            ) from error
    told = program.get_compiled_memory_stats()
    usage = MemoryUse(
        arguments=told.argument_size_in_bytes,
        outputs=told.output_size_in_bytes,
        aliased=told.alias_size_in_bytes,
        temporaries=told.temp_size_in_bytes,
    )
    return program.hlo_modules()[0].to_string(), usage
