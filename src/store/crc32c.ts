/** CRC-32C (Castagnoli), as in every journal frame. Eight tables, so that eight bytes go in one step. */

const tables: Uint32Array[] = [];
{
	const first = new Uint32Array(256);
	for (let n = 0; n < 256; n++) {
		let crc = n;
		for (let bit = 0; bit < 8; bit++) crc = crc & 1 ? (crc >>> 1) ^ 0x82f63b78 : crc >>> 1;
		first[n] = crc >>> 0;
	}
	tables.push(first);
	for (let k = 1; k < 8; k++) {
		const before = tables[k - 1] as Uint32Array;
		tables.push(before.map((crc) => ((crc >>> 8) ^ (first[crc & 0xff] as number)) >>> 0));
	}
}
const [t0, t1, t2, t3, t4, t5, t6, t7] = tables as [
	Uint32Array,
	Uint32Array,
	Uint32Array,
	Uint32Array,
	Uint32Array,
	Uint32Array,
	Uint32Array,
	Uint32Array,
];

/** Of `bytes[from … to)`. `crc32c(Buffer.from("123456789")) === 0xe3069283` */
export function crc32c(bytes: Buffer, from = 0, to = bytes.length): number {
	let crc = 0xffffffff;
	let at = from;
	for (; at + 8 <= to; at += 8) {
		const low = bytes.readUInt32LE(at) ^ crc;
		const high = bytes.readUInt32LE(at + 4);
		crc =
			(t7[low & 0xff] as number) ^
			(t6[(low >>> 8) & 0xff] as number) ^
			(t5[(low >>> 16) & 0xff] as number) ^
			(t4[low >>> 24] as number) ^
			(t3[high & 0xff] as number) ^
			(t2[(high >>> 8) & 0xff] as number) ^
			(t1[(high >>> 16) & 0xff] as number) ^
			(t0[high >>> 24] as number);
	}
	for (; at < to; at++) crc = (crc >>> 8) ^ (t0[(crc ^ (bytes[at] as number)) & 0xff] as number);
	return (crc ^ 0xffffffff) >>> 0;
}
