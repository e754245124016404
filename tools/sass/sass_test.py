"""How machine code is counted, on code that stands here; and that the kernels of the build meet the bounds that the
table bench/results/sass.md says are met."""
import pathlib
import unittest

import machine_code
import sass

BUILD = sass.ROOT / "build" / "release"
TABLE = sass.ROOT / "bench" / "results" / "sass.md"

# A walk of 4 elements a turn with its rest before it, and a kernel without a loop.
TEXT = """
\t//----- nvinfo : EIATTR_REGCOUNT
\t.align\t\t4
        /*0000*/ \t.byte\t0x04, 0x2f
.L_0:
        /*0004*/ \t.word\tindex@(rows_0a)
        /*0008*/ \t.word\t0x00000020
//--------------------- .text.rows_0a --------------------------
\t.section\t.text.rows_0a,"ax",@progbits
.text.rows_0a:
        /*0000*/                   S2R R0, SR_TID.X ;
        /*0010*/                   I2F.U32.RP R1, R0 ;
        /*0020*/               @P0 BRA `(.L_x_2) ;
.L_x_1:
        /*0030*/                   LDG.E.U16.CONSTANT R7, desc[UR8][R10.64] ;
        /*0040*/              @!P0 BRA `(.L_x_1) ;
.L_x_2:
        /*0050*/                   LDG.E.U16.CONSTANT R7, desc[UR8][R10.64] ;
        /*0060*/                   LDG.E.U16.CONSTANT R8, desc[UR8][R10.64+0x8] ;
        /*0070*/               @P2 BRA `(.L_x_3) ;
        /*0080*/                   CALL.REL.NOINC `($__internal_0_$__cuda_sm20_div_s64) ;
        /*0090*/                   FADD R3, R3, R7 ;
.L_x_3:
        /*00a0*/                   LDG.E.U16.CONSTANT R9, desc[UR8][R10.64] ;
        /*00b0*/                   LDG.E.U16.CONSTANT R9, desc[UR8][R10.64] ;
        /*00c0*/                   FADD R3, R3, R8 ;
        /*00d0*/               @P1 BRA `(.L_x_2) ;
        /*00e0*/                   SHFL.IDX PT, R4, R3, R5, 0x1f ;
        /*00f0*/                   BAR.SYNC.DEFER_BLOCKING 0x0 ;
        /*0100*/                   STG.E desc[UR8][R20.64], R3 ;
        /*0110*/                   EXIT ;
.L_x_9:
        /*0120*/                   BRA `(.L_x_9);
        /*0130*/                   NOP;
//--------------------- .text.elements_0b --------------------------
\t.section\t.text.elements_0b,"ax",@progbits
.text.elements_0b:
        /*0000*/               @P0 BRA `(.L_x_5) ;
        /*0010*/                   LDG.E.128 R8, desc[UR4][R2.64] ;
        /*0020*/                   STG.E.128 desc[UR4][R4.64], R8 ;
        /*0030*/                   EXIT ;
.L_x_5:
        /*0040*/                   LDG.E R8, desc[UR4][R2.64] ;
        /*0050*/                   STL [R1], R8 ;
        /*0060*/                   STG.E desc[UR4][R4.64], R8 ;
        /*0070*/               @P1 BRA `(.L_x_5) ;
        /*0080*/                   EXIT ;
//--------------------- .text.matmul_0c --------------------------
\t.section\t.text.matmul_0c,"ax",@progbits
.text.matmul_0c:
.L_x_6:
        /*0000*/                   LDS.128 R8, [R2] ;
        /*0010*/                   HMMA.16816.F32.BF16 R12, R8, R10, R12 ;
        /*0020*/                   HMMA.16816.F32.BF16 R16, R8, R10, R16 ;
        /*0030*/                   STS.64 [R2], R8 ;
        /*0040*/               @P1 BRA `(.L_x_6) ;
        /*0050*/                   EXIT ;
"""


class MachineCodeTest(unittest.TestCase):
    def setUp(self):
        self.kernels = machine_code.parse(TEXT)

    def test_reads_kernels_with_their_instructions_and_registers(self):
        rows = self.kernels["rows_0a"]
        self.assertEqual((len(rows.code), rows.registers, rows.count("SHFL"), rows.count("BAR")), (19, 32, 1, 1))
        self.assertEqual(rows.code[2].predicate, "@P0")
        self.assertEqual(self.kernels["elements_0b"].registers, 0)

    def test_a_rest_is_no_walk_and_the_shortest_way_counts(self):
        (hot,) = self.kernels["rows_0a"].hot()
        self.assertTrue(hot.is_loop)
        self.assertEqual(len(hot.instructions), 7)
        self.assertEqual(hot.accesses(), {("LDG", 16): 4})
        row = sass.row_of(self.kernels["rows_0a"], sass.Asked(2, instructions=2, rows=True))
        self.assertEqual((row.instructions, row.divisions, row.share), (7 / 4, 0, 0))
        self.assertEqual(sass.misses([row], sass.Asked(2, instructions=1)),
                         ["more than 1 instructions an element", "accesses below 128 bits"])

    def test_without_a_loop_of_the_widest_accesses_the_way_through_counts(self):
        (hot,) = self.kernels["elements_0b"].hot()
        self.assertEqual((hot.is_loop, len(hot.instructions)), (False, 4))
        row = sass.row_of(self.kernels["elements_0b"], sass.Asked(4, instructions=8))
        self.assertEqual((row.instructions, row.share), (1, 1))
        self.assertEqual(sass.misses([row], sass.Asked(4, instructions=8, rows=True, tile=True)),
                         ["spills", "no shuffles", "no tile"])

    def test_loops_of_tensor_cores_are_held_against_their_roof(self):
        loop = self.kernels["matmul_0c"].tensor_loop()
        self.assertEqual((loop.products, loop.slots, loop.shared), (2, 5, 24))
        self.assertEqual((loop.of_issue, loop.of_roof), (2 / 5, 8 / 24))
        self.assertIsNone(self.kernels["rows_0a"].tensor_loop())
        row = sass.row_of(self.kernels["matmul_0c"], sass.Asked(2, wide=False, tensor=0.5))
        self.assertEqual(sass.misses([row], sass.Asked(2, wide=False, tensor=0.5)),
                         ["below 0.5 of the roof of tensor cores"])

    def test_integer_divisions_are_found(self):
        self.assertEqual([i.address for i in self.kernels["rows_0a"].code if i.divides], [0x10, 0x80])


class TableTest(unittest.TestCase):
    def test_a_page_says_again_what_was_missed(self):
        kernels = machine_code.parse(TEXT)
        rows = [sass.row_of(kernels["elements_0b"], sass.CLASSES["add_f32"])]
        self.assertEqual(sass.verdicts(sass.table({"add_f32": rows})), {"add_f32": ["spills"]})

    def test_slow_the_kernels_of_the_build_are_as_good_as_the_table_says(self):
        try:
            found = sass.verdicts(sass.table(sass.measure(BUILD)))
        except sass.Missing as missing:
            self.skipTest(str(missing))
        kept = sass.verdicts(TABLE.read_text(encoding="utf-8"))
        self.assertEqual(sorted(kept), sorted(found))
        for name, missed in found.items():
            self.assertLessEqual(set(missed), set(kept[name]), name)


if __name__ == "__main__":
    unittest.main()
