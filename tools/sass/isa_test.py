"""How assembly for AMD's GPUs is read, on some that stands here; and that the kernels of the build meet the bounds that
the table bench/results/isa.md says are met, on one architecture."""
import unittest

import isa
import sass

BUILD = sass.ROOT / "build" / "release"
TABLE = sass.ROOT / "bench" / "results" / "isa.md"
TARGET = "gfx90a"

# A walk of 16 bytes a turn in the words of gfx9, and the way through a kernel that spills in those of gfx11.
TEXT = """
\t.text
\t.p2align\t8
elements_0a:                            ; @elements_0a
; %bb.0:
\ts_load_dwordx4 s[0:3], s[4:5], 0x20
\ts_cbranch_execz .LBB0_2
.LBB0_1:                                ; =>This Inner Loop Header: Depth=1
\tglobal_load_dwordx4 v[0:3], v4, s[4:5]
\tglobal_load_ushort v5, v4, s[6:7]
\tbuffer_load_dword v6, off, s[0:3], 0    ; 4-byte Folded Reload
\tv_mfma_f32_16x16x4f32 a[0:3], v0, v1, a[0:3]
\tglobal_store_dwordx4 v4, v[0:3], s[4:5] offset:16
\ts_cbranch_scc1 .LBB0_1
.LBB0_2:
\ts_endpgm
\t.section\t.rodata,"a",@progbits
\t.amdhsa_kernel elements_0a
.Lfunc_end0:
rows_0b:                                ; @rows_0b
\tglobal_load_d16_hi_b16 v1, v0, s[0:1]
\tglobal_load_b64 v[2:3], v0, s[0:1]
\ts_branch .LBB1_1
\tglobal_load_b128 v[2:5], v0, s[0:1]
.LBB1_1:
\tglobal_store_b64 v0, v[2:3], s[2:3]
\ts_endpgm
.Lfunc_end1:
\tv_dot2_f32_f16 v0, v1, v2, v3
\t.amdgpu_metadata
---
amdhsa.kernels:
  - .agpr_count:     4
    .args:
      - .offset:         0
        .name:           p0
    .group_segment_fixed_size: 1024
    .name:           elements_0a
    .private_segment_fixed_size: 0
    .sgpr_spill_count: 0
    .vgpr_count:     12
    .vgpr_spill_count: 0
  - .args:           []
    .group_segment_fixed_size: 0
    .name:           rows_0b
    .private_segment_fixed_size: 16
    .sgpr_spill_count: 2
    .vgpr_count:     6
    .vgpr_spill_count: 4
amdhsa.version:
  - 1
  - 2
...
"""


class AssemblyTest(unittest.TestCase):
    def setUp(self):
        self.kernels = isa.parse(TEXT)

    def rows(self, name, asked):
        return [sass.row_of(self.kernels[name], asked)]

    def test_reads_kernels_with_what_the_compiler_says_of_them(self):
        elements, rows = self.kernels["elements_0a"], self.kernels["rows_0b"]
        self.assertEqual((elements.registers, elements.spills, elements.scratch, elements.shared), (12, 0, 0, 1024))
        self.assertEqual((rows.registers, rows.spills, rows.scalar_spills, rows.scratch), (6, 4, 2, 16))
        self.assertEqual((len(elements.code), elements.matrix, len(rows.code), rows.matrix), (9, 1, 6, 0))

    def test_counts_accesses_where_the_time_goes(self):
        (elements,), (rows,) = self.rows("elements_0a", sass.Asked(4)), self.rows("rows_0b", sass.Asked(4))
        self.assertEqual(elements.accesses, {("LDG", 128): 1, ("LDG", 16): 1, ("STG", 128): 1})
        self.assertEqual(rows.accesses, {("LDG", 16): 1, ("LDG", 64): 1, ("STG", 64): 1})

    def test_bounds_are_those_of_the_class(self):
        asked = sass.Asked(4, tensor=0.5)
        self.assertEqual(isa.misses(self.rows("elements_0a", asked), asked), [])
        self.assertEqual(isa.misses(self.rows("rows_0b", asked), asked),
                         ["spills", "spills of SGPRs", "accesses below 128 bits", "no matrix units"])
        asked = sass.Asked(4, wide=False)
        self.assertEqual(isa.misses(self.rows("rows_0b", asked), asked), ["spills", "spills of SGPRs"])

    def test_a_page_says_again_what_was_missed(self):
        good, bad = (self.rows(name, sass.CLASSES["sum_f32"]) for name in ("elements_0a", "rows_0b"))
        page = isa.table({"sum_f32": {"gfx90a": good, "gfx942": good, "gfx1100": bad, "gfx1201": good}})
        self.assertEqual(isa.verdicts(page), {"sum_f32": {
            "gfx90a": [], "gfx942": [], "gfx1100": ["spills", "spills of SGPRs", "accesses below 128 bits"],
            "gfx1201": []}})


class TableTest(unittest.TestCase):
    def test_slow_the_kernels_of_the_build_are_as_good_as_the_table_says(self):
        try:
            found = isa.measure(BUILD, targets=[TARGET])
        except sass.Missing as missing:
            self.skipTest(str(missing))
        kept = isa.verdicts(TABLE.read_text(encoding="utf-8"))
        self.assertEqual(sorted(kept), sorted(found))
        for name, rows in found.items():
            self.assertLessEqual(set(isa.misses(rows[TARGET], sass.CLASSES[name])), set(kept[name][TARGET]), name)


if __name__ == "__main__":
    unittest.main()
