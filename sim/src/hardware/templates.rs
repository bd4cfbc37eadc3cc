//! How each product's chips can be cut: names and sizes of the vendor's templates.

use super::product::Product;
use crate::profile::{ChipPlan, Profile};
use crate::wire::Capacity;

const FULL_310P_MEMORY_MB: u64 = 24_576;
const FULL_910_MEMORY_MB: u64 = 32_768;
/// A 310P of which the system sees more than this has twice the usual memory.
const LARGE_310P_MEMORY_MB: i64 = 30_000;
/// A 910 with no more than this has half the usual memory.
const SMALL_910_MEMORY_MB: i64 = 16_384;
/// Boards of 910B chips with 24 AI cores.
const BOARDS_24_CORES: [u32; 8] = [0x13, 0x30, 0x31, 0x39, 0x3a, 0x43, 0x50, 0x51];
/// Boards of 910B chips with 20 AI cores and 64 GB.
const BOARDS_20_CORES_64_GB: [u32; 8] = [0x10, 0x12, 0x32, 0x38, 0x3b, 0x3e, 0x42, 0x53];
/// Boards of 910B chips with 20 AI cores and 32 GB.
const BOARDS_20_CORES_32_GB: [u32; 12] = [
    0x11, 0x28, 0x29, 0x33, 0x34, 0x37, 0x3c, 0x3d, 0x40, 0x41, 0x52, 0x54,
];

/// A way to cut a part from a chip.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Template {
    /// Its name.
    pub(super) name: &'static str,
    /// What is cut.
    pub(super) capacity: Capacity,
}

/// How a chip can be cut.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Cutting {
    /// The templates.
    pub(super) templates: Vec<Template>,
    /// A whole chip.
    pub(super) whole: Capacity,
    /// vNPUs are gathered in vgroups.
    pub(super) has_vgroups: bool,
    /// Ids each chip has for its vNPUs.
    pub(super) ids_per_chip: u32,
}

impl Cutting {
    /// How the chip can be cut; `None` when it cannot.
    pub(super) fn of(product: Product, plan: &ChipPlan, kind: &Profile) -> Option<Self> {
        let cutting = if product.is_310p() {
            Self {
                templates: TEMPLATES_310P.to_vec(),
                whole: WHOLE_310P,
                has_vgroups: true,
                ids_per_chip: 8,
            }
        } else if product == Product::Ascend910 {
            Self::without_vgroups(&TEMPLATES_910, WHOLE_910)
        } else if product.is_910b() {
            let (templates, whole) = of_910b(plan, kind);
            Self::without_vgroups(templates, whole)
        } else if product.is_a3() && kind.vnpu.a3 {
            let (templates, whole) = if plan.identity.aicore_count >= 24 {
                (&TEMPLATES_A3_24[..], WHOLE_24)
            } else {
                (&TEMPLATES_A3_20[..], WHOLE_20)
            };
            Self::without_vgroups(templates, whole)
        } else {
            return None;
        };
        Some(cutting.fitted(product, plan, kind))
    }

    fn without_vgroups(templates: &[Template], whole: Capacity) -> Self {
        Self {
            templates: templates.to_vec(),
            whole,
            has_vgroups: false,
            ids_per_chip: 16,
        }
    }

    /// The template of that name.
    pub(super) fn template(&self, name: &str) -> Option<Template> {
        self.templates
            .iter()
            .find(|known| known.name == name)
            .copied()
    }

    /// The same templates take more or less memory on chips that have more or less.
    fn fitted(mut self, product: Product, plan: &ChipPlan, kind: &Profile) -> Self {
        let seen = |reading| kind.level_of(reading).unwrap_or_default();
        let memory_mb = kind.vnpu.memory_mb.unwrap_or_else(|| {
            if product.is_310p() && seen("memory_size_mb") > LARGE_310P_MEMORY_MB {
                2 * FULL_310P_MEMORY_MB
            } else if product == Product::Ascend910
                && (1..=SMALL_910_MEMORY_MB).contains(&seen("hbm_size_mb"))
            {
                FULL_910_MEMORY_MB / 2
            } else {
                self.whole.memory_mb
            }
        });
        let usual_mb = self.whole.memory_mb;
        for template in &mut self.templates {
            template.capacity.memory_mb = template.capacity.memory_mb * memory_mb / usual_mb;
        }
        self.whole.memory_mb = memory_mb;
        if product == Product::Ascend910 {
            self.whole.aicores = plan.identity.aicore_count;
        }
        self
    }
}

/// By board, and by size where the board is not known.
fn of_910b(plan: &ChipPlan, kind: &Profile) -> (&'static [Template], Capacity) {
    let board = plan.board_id;
    let is_large = kind.level_of("hbm_size_mb").unwrap_or_default() > 40_000;
    match () {
        () if BOARDS_24_CORES.contains(&board) => (&TEMPLATES_24, WHOLE_24),
        () if BOARDS_20_CORES_64_GB.contains(&board) => (&TEMPLATES_20_64_GB, WHOLE_20),
        () if BOARDS_20_CORES_32_GB.contains(&board) => (&TEMPLATES_20_32_GB, WHOLE_20_32_GB),
        () if plan.identity.aicore_count >= 24 => (&TEMPLATES_24, WHOLE_24),
        () if is_large => (&TEMPLATES_20_64_GB, WHOLE_20),
        () => (&TEMPLATES_20_32_GB, WHOLE_20_32_GB),
    }
}

/// AI cores, memory in MB, AI CPUs, then VPC, VENC, VDEC, JPEGD, JPEGE, PNGD in halves.
const fn cut(cores: u32, memory_mb: u64, cpus: u32, media: [u32; 6]) -> Capacity {
    Capacity {
        aicores: cores,
        memory_mb,
        aicpus: cpus,
        vpc: media[0],
        venc: media[1],
        vdec: media[2],
        jpegd: media[3],
        jpege: media[4],
        pngd_halves: media[5],
    }
}

const fn template(name: &'static str, capacity: Capacity) -> Template {
    Template { name, capacity }
}

const WHOLE_310P: Capacity = cut(8, FULL_310P_MEMORY_MB, 7, [12, 3, 12, 16, 8, 0]);
const TEMPLATES_310P: [Template; 7] = [
    template("vir01", cut(1, 3072, 1, [1, 0, 1, 2, 1, 0])),
    template("vir02", cut(2, 6144, 2, [3, 1, 3, 4, 2, 0])),
    template("vir02_1c", cut(2, 6144, 1, [3, 0, 3, 4, 2, 0])),
    template("vir04", cut(4, 12_288, 4, [6, 2, 6, 8, 4, 0])),
    template("vir04_3c", cut(4, 12_288, 3, [6, 1, 6, 8, 4, 0])),
    template("vir04_3c_ndvpp", cut(4, 12_288, 3, [0; 6])),
    template("vir04_4c_dvpp", cut(4, 12_288, 4, [12, 3, 12, 16, 8, 0])),
];

const WHOLE_910: Capacity = cut(32, FULL_910_MEMORY_MB, 14, [16, 0, 16, 16, 8, 48]);
const TEMPLATES_910: [Template; 4] = [
    template("vir02", cut(2, 2048, 1, [1, 0, 1, 1, 0, 3])),
    template("vir04", cut(4, 4096, 1, [2, 0, 2, 2, 1, 6])),
    template("vir08", cut(8, 8192, 3, [4, 0, 4, 4, 2, 12])),
    template("vir16", cut(16, 16_384, 7, [8, 0, 8, 8, 4, 24])),
];

const WHOLE_24: Capacity = cut(24, 65_536, 6, [10, 0, 2, 28, 4, 0]);
const WHOLE_20: Capacity = cut(20, 65_536, 7, [9, 0, 2, 24, 4, 0]);
const WHOLE_20_32_GB: Capacity = cut(20, 32_768, 7, [9, 0, 2, 24, 4, 0]);
/// On 910B less memory is cut than the name says.
const TEMPLATES_24: [Template; 2] = [
    template("vir12_3c_32g", cut(12, 30_720, 3, [5, 0, 1, 14, 2, 0])),
    template("vir06_1c_16g", cut(6, 15_360, 1, [2, 0, 0, 7, 1, 0])),
];
const TEMPLATES_20_64_GB: [Template; 2] = [
    template("vir10_3c_32g", cut(10, 30_720, 3, [4, 0, 1, 12, 2, 0])),
    template("vir05_1c_16g", cut(5, 15_360, 1, [2, 0, 0, 6, 1, 0])),
];
const TEMPLATES_20_32_GB: [Template; 4] = [
    template("vir10_3c_16g", cut(10, 14_336, 3, [4, 0, 1, 12, 2, 0])),
    template("vir10_4c_16g_m", cut(10, 14_336, 4, [9, 0, 2, 24, 4, 0])),
    template("vir10_3c_16g_nm", cut(10, 14_336, 3, [0; 6])),
    template("vir05_1c_8g", cut(5, 7168, 1, [2, 0, 0, 6, 1, 0])),
];
/// Their media units are not published; those of the 910B chip of that size are assumed.
const TEMPLATES_A3_24: [Template; 2] = [
    template("vir12_3c_32g", cut(12, 32_768, 3, [5, 0, 1, 14, 2, 0])),
    template("vir06_1c_16g", cut(6, 16_384, 1, [2, 0, 0, 7, 1, 0])),
];
const TEMPLATES_A3_20: [Template; 2] = [
    template("vir10_3c_32g", cut(10, 32_768, 3, [4, 0, 1, 12, 2, 0])),
    template("vir05_1c_16g", cut(5, 16_384, 1, [2, 0, 0, 6, 1, 0])),
];
