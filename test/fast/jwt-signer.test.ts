import { createSecretKey } from 'node:crypto';
import fc from 'fast-check';
import { expect, it } from 'vitest';
import { jwtSigner } from '../../src/lib/fast/jwt-signer.ts';
import { jwtSigner as signerOfJose } from '../support/fast/library/jwt-signer.ts';
import { anyCharacter } from '../support/harness/any-character.ts';

it('RFC 7515 section 3.1: a token is byte for byte the one that jose signs', async () => {
  const claims = fc.dictionary(fc.string({ unit: anyCharacter }), fc.jsonValue()).filter((given) => !('exp' in given));
  const secret = fc.uint8Array({ minLength: 32, maxLength: 80 });
  await fc.assert(
    fc.asyncProperty(claims, secret, fc.string(), async (given, bytes, keyId) => {
      const key = { keyId, secret: createSecretKey(bytes) };
      expect(jwtSigner(key)(given)).toBe(await signerOfJose(key)(given));
    }),
    { numRuns: 200 },
  );
});
