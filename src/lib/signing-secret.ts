const MIN_BYTES = 24;
const MAX_BYTES = 64;

/** What a signing secret must be, in words for whoever has to write another. */
export const SIGNING_SECRET_FORM = `whsec_ and ${MIN_BYTES} to ${MAX_BYTES} bytes in base64`;

/**
 * The key of a symmetric secret of Standard Webhooks (its specification, section "Signature scheme"): `whsec_` and 24
 * to 64 bytes in base64 with its padding. Undefined for anything else.
 */
export function signingKey(secret: string): Buffer | undefined {
  const encoded = /^whsec_([A-Za-z0-9+/]+={0,2})$/.exec(secret)?.[1];
  if (encoded === undefined) return undefined;
  const key = Buffer.from(encoded, 'base64');
  if (key.toString('base64') !== encoded) return undefined;
  return key.length >= MIN_BYTES && key.length <= MAX_BYTES ? key : undefined;
}
