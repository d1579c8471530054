import fc from 'fast-check';

/** Any character of Unicode. fast-check's own `binary` makes a table of them all in each process. */
export const anyCharacter: fc.Arbitrary<string> = fc
  .oneof(fc.nat(0xd7ff), fc.integer({ min: 0xe000, max: 0x10ffff }))
  .map((code) => String.fromCodePoint(code));
