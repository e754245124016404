"""The situations in which the tests of the seeds run: what the environment holds, and what must follow from it.

A situation names the plug-ins of its folder (in the build's folder of stand-ins, or the real one of OpenCL), the
variables of the environment, and, as golden text, the state of each back end, the device that get_device chooses and
what it says with .verbose. seeds_test.py runs seeds_tests once for each.
"""

import dataclasses

# Both folders that are searched are put in for %s.
MISSING = "missing 0 librosin_{}.so: not in %s"
UNLOADED = ("unloaded {} its plug-in is not loaded, and loading by itself is switched off; call use(\"{}\")")
NOT_ALLOWED = "`gpu_backend` preference is set to {}, which is not allowed.\nDefaulting to automatic device selection."


@dataclasses.dataclass(frozen=True)
class Situation:
    plugins: tuple = ()  # "cuda", "amdgpu", "metal", "opencl"
    environment: dict = dataclasses.field(default_factory=dict)  # {build}: the folder of the build
    file: str = ""  # text of LocalPreferences.toml in the working folder; empty: none
    states: dict = dataclasses.field(default_factory=dict)  # of back ends that are not missing
    preference: str = ""  # what environment and file prefer, where that is a back end
    chosen: str = "CPU"
    said: tuple = ("Using backend: CPU.",)
    float64: bool = True  # the devices have it
    alone: bool = False  # each test in a process of its own: loading a plug-in cannot be undone


def functional(count):
    return f"functional {count}"


def broken(why):
    return f"broken 0 {why}"


def preferred(name, *more):
    return (f"Using backend set in preferences: {name}.", *more)


def not_installed(name, plugin):
    return (f"Trying to use backend: {name} but its plug-in is not installed (librosin_{plugin}.so: not in %s). "
            "Choosing automatically.")


BOTH = ("cuda", "amdgpu")
CUDA = ("cuda",)
AMDGPU = ("amdgpu",)
ONE_EACH = {"CUDA": functional(1), "AMDGPU": functional(1)}
THREE = {"CUDA": functional(3), "AMDGPU": functional(3)}
THREE_DEVICES = {"ROSIN_REFERENCE": "devices=3"}
NONE_THERE = broken("there is no such device")
SWITCHED_OFF = "CUDA: switched off by functional=0 in ROSIN_REFERENCE_CUDA"
NO_METAL = "Metal exists on Apple's systems only"
PRETENDED_METAL = {"ROSIN_METAL_LIBRARIES": "{build}/fake_metal"}
USING_CUDA, USING_AMDGPU = ("Using backend: CUDA.",), ("Using backend: AMDGPU.",)

SITUATIONS = {
    # --- what there is
    "no_plugin": Situation(),
    "one_cuda": Situation(CUDA, states={"CUDA": functional(1)}, chosen="CUDA:0", said=USING_CUDA),
    "three_cuda": Situation(CUDA, THREE_DEVICES, states={"CUDA": functional(3)}, chosen="CUDA:0", said=USING_CUDA),
    "no_cuda_device": Situation(CUDA, {"ROSIN_REFERENCE_CUDA": "devices=0"}, states={"CUDA": NONE_THERE}),
    "cuda_not_functional": Situation(CUDA, {"ROSIN_REFERENCE_CUDA": "functional=0"},
                                     states={"CUDA": broken(SWITCHED_OFF)}),
    "one_amdgpu": Situation(AMDGPU, states={"AMDGPU": functional(1)}, chosen="AMDGPU:0", said=USING_AMDGPU),
    "three_of_both": Situation(BOTH, THREE_DEVICES, states=THREE, chosen="CUDA:0", said=USING_CUDA),
    "amdgpu_behind_cuda_that_fails": Situation(
        BOTH, {"ROSIN_REFERENCE_CUDA": "functional=0", "ROSIN_REFERENCE_AMDGPU": "devices=3"},
        states={"CUDA": broken(SWITCHED_OFF), "AMDGPU": functional(3)}, chosen="AMDGPU:0", said=USING_AMDGPU),
    "cuda_without_float64": Situation(
        CUDA, {"ROSIN_REFERENCE_CUDA": "fp64=0"}, states={"CUDA": functional(1)}, chosen="CUDA:0", said=USING_CUDA,
        float64=False),
    "cuda_with_vendor_calls": Situation(
        CUDA, {"ROSIN_REFERENCE_CUDA": "memory=256M,vendor=1"}, states={"CUDA": functional(1)}, chosen="CUDA:0",
        said=USING_CUDA),
    # --- loading by itself switched off
    "autoload_off": Situation(
        BOTH, {"ROSIN_AUTOLOAD": "0"}, alone=True,
        states={name: UNLOADED.format(count, name) for name, count in
                {"CUDA": 1, "AMDGPU": 1, "Metal": 0, "OpenCL": 0}.items()}),
    "autoload_off_and_cuda_preferred": Situation(
        BOTH, THREE_DEVICES, file="[rosin]\nautoload = false\ngpu_backend = \"CUDA\"\n", preference="CUDA", alone=True,
        states={name: UNLOADED.format(count, name) for name, count in
                {"CUDA": 3, "AMDGPU": 3, "Metal": 0, "OpenCL": 0}.items()},
        said=preferred("CUDA", "Trying to use backend: CUDA but its plug-in is not loaded. Call use(\"CUDA\") and call "
                               "this function again to respect the preferences backend.", "Using backend: CPU.")),
    # --- each preference, by the environment and by a file
    "cuda_preferred": Situation(BOTH, {"ROSIN_GPU_BACKEND": "CUDA"}, states=ONE_EACH, preference="CUDA",
                                chosen="CUDA:0", said=preferred("CUDA")),
    "amdgpu_preferred": Situation(BOTH, {"ROSIN_GPU_BACKEND": "amdgpu"}, states=ONE_EACH, preference="AMDGPU",
                                  chosen="AMDGPU:0", said=preferred("AMDGPU")),
    "metal_preferred": Situation(BOTH, {"ROSIN_GPU_BACKEND": "Metal"}, states=ONE_EACH, preference="Metal",
                                 chosen="CUDA:0",
                                 said=preferred("Metal", not_installed("Metal", "metal"), *USING_CUDA)),
    "cpu_preferred": Situation(BOTH, {"ROSIN_GPU_BACKEND": "CPU"}, states=ONE_EACH, preference="CPU",
                               said=preferred("CPU")),
    "amdgpu_preferred_by_the_table_of_flux": Situation(
        BOTH, file="[Flux]\ngpu_backend = \"AMDGPU\"\n", states=ONE_EACH, preference="AMDGPU", chosen="AMDGPU:0",
        said=preferred("AMDGPU")),
    "the_table_of_rosin_goes_before_that_of_lux": Situation(
        BOTH, file="[LuxDeviceUtils]\ngpu_backend = \"CPU\"\n[rosin]\ngpu_backend = \"AMDGPU\"\n", states=ONE_EACH,
        preference="AMDGPU", chosen="AMDGPU:0", said=preferred("AMDGPU")),
    "cpu_preferred_by_the_table_of_rosin": Situation(
        BOTH, file="[rosin]\ngpu_backend = \"CPU\"\n", states=ONE_EACH, preference="CPU", said=preferred("CPU")),
    "cuda_preferred_and_missing": Situation(
        file="[Lux]\ngpu_backend = \"CUDA\"\n", preference="CUDA",
        said=preferred("CUDA", not_installed("CUDA", "cuda"), "Using backend: CPU.")),
    "amdgpu_preferred_and_missing": Situation(
        CUDA, {"ROSIN_GPU_BACKEND": "AMDGPU"}, states={"CUDA": functional(1)}, preference="AMDGPU", chosen="CUDA:0",
        said=preferred("AMDGPU", not_installed("AMDGPU", "amdgpu"), *USING_CUDA)),
    # --- hidden devices
    "cuda_hidden_by_minus_one": Situation(
        CUDA, THREE_DEVICES | {"CUDA_VISIBLE_DEVICES": "-1"},
        states={"CUDA": broken("CUDA_VISIBLE_DEVICES='-1' hides every device")}),
    "cuda_hidden_by_nothing_and_preferred": Situation(
        CUDA, THREE_DEVICES | {"CUDA_VISIBLE_DEVICES": "", "ROSIN_GPU_BACKEND": "CUDA"}, preference="CUDA",
        states={"CUDA": broken("CUDA_VISIBLE_DEVICES='' hides every device")},
        said=preferred("CUDA", "Backend: CUDA from the set preferences is not functional (CUDA_VISIBLE_DEVICES='' "
                               "hides every device). Defaulting to automatic device selection.",
                       "Using backend: CPU.")),
    "two_of_three_cuda": Situation(
        CUDA, THREE_DEVICES | {"CUDA_VISIBLE_DEVICES": "0,1"}, states={"CUDA": functional(2)}, chosen="CUDA:0",
        said=USING_CUDA),
    "amdgpu_hidden_by_rocr": Situation(
        BOTH, THREE_DEVICES | {"ROCR_VISIBLE_DEVICES": "-1"}, chosen="CUDA:0", said=USING_CUDA,
        states={"CUDA": functional(3), "AMDGPU": broken("ROCR_VISIBLE_DEVICES='-1' hides every device")}),
    "amdgpu_hidden_by_hip": Situation(
        AMDGPU, THREE_DEVICES | {"HIP_VISIBLE_DEVICES": ""},
        states={"AMDGPU": broken("HIP_VISIBLE_DEVICES='' hides every device")}),
    "two_of_three_amdgpu": Situation(
        AMDGPU, THREE_DEVICES | {"HIP_VISIBLE_DEVICES": "0,1"}, states={"AMDGPU": functional(2)}, chosen="AMDGPU:0",
        said=USING_AMDGPU),
    # --- the real plug-in of Metal, here and on pretended devices
    "metal_off_apple": Situation(("metal",), states={"Metal": broken(NO_METAL)}),
    "metal_preferred_off_apple": Situation(
        ("cuda", "metal"), {"ROSIN_GPU_BACKEND": "Metal"}, states={"CUDA": functional(1), "Metal": broken(NO_METAL)},
        preference="Metal", chosen="CUDA:0",
        said=preferred("Metal", f"Backend: Metal from the set preferences is not functional ({NO_METAL}). "
                                "Defaulting to automatic device selection.", *USING_CUDA)),
    "one_metal": Situation(("metal",), PRETENDED_METAL, states={"Metal": functional(1)}, chosen="Metal:0",
                           said=("Using backend: Metal.",), float64=False),
    "metal_preferred_behind_cuda": Situation(
        ("cuda", "metal"), PRETENDED_METAL | {"ROSIN_GPU_BACKEND": "metal", "ROSIN_REFERENCE": "fp64=0"},
        states={"CUDA": functional(1), "Metal": functional(1)}, preference="Metal", chosen="Metal:0",
        said=preferred("Metal"), float64=False),
    # --- a real back end, by name only as its device is a processor
    "opencl_by_name": Situation(("opencl",), states={"OpenCL": functional(1)}),
    "opencl_preferred": Situation(
        ("opencl",), {"ROSIN_GPU_BACKEND": "OpenCL"}, states={"OpenCL": functional(1)}, preference="OpenCL",
        chosen="OpenCL:0", said=preferred("OpenCL")),
}
