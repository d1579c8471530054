import { createHmac } from 'node:crypto';

/** Secrets as operators write them: `whsec_` and 32 bytes in base64. */
export const SECRET = 'whsec_bm90aWZpY2F0aW9ucyBhcmUgc2lnbmVkIGJ5IHRoaXM=';
export const PREVIOUS = 'whsec_dGhlIG9uZSBiZWZvcmUsIHdoaWNoIHN0aWxsIHZlcmlmaWVz';
export const FOREIGN = 'whsec_d2hvZXZlciBoYXMgdGhpcyBvbmUgaXMgYSBzdHJhbmdlciE=';

/** The three headers of Standard Webhooks over a body, as a sender would make them. */
export function signatureHeaders(
  secret: string,
  body: string | Buffer,
  { id = 'msg_1', atMs }: { id?: string; atMs: number },
): Record<'webhook-id' | 'webhook-timestamp' | 'webhook-signature', string> {
  const timestamp = String(Math.floor(atMs / 1_000));
  const key = Buffer.from(secret.slice('whsec_'.length), 'base64');
  const signature = createHmac('sha256', key).update(`${id}.${timestamp}.`).update(body).digest('base64');
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${signature}` };
}
