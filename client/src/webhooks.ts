/** The longest difference between a signature's time and the clock of who verifies it. */
const TOLERANCE_S = 300;

export type SignatureHeaders = Record<'webhook-id' | 'webhook-timestamp' | 'webhook-signature', string>;

function bytesIn(base64: string): Uint8Array<ArrayBuffer> | undefined {
  return /^(?:[A-Za-z0-9+/]{4})*(?:[A-Za-z0-9+/]{2}==|[A-Za-z0-9+/]{3}=)?$/.test(base64)
    ? Uint8Array.from(atob(base64), (character) => character.charCodeAt(0))
    : undefined;
}

async function keyOf(secret: string): Promise<CryptoKey> {
  const bytes = bytesIn(secret.replace(/^whsec_/, ''));
  if (!bytes?.length) throw new TypeError('a signing secret must be whsec_ and bytes in base64');
  return crypto.subtle.importKey('raw', bytes, { name: 'HMAC', hash: 'SHA-256' }, false, ['sign', 'verify']);
}

/** Returns what is signed: `id.timestamp.body`. */
function signedBytes(id: string, timestamp: string, body: string | Uint8Array): Uint8Array<ArrayBuffer> {
  const [head, bytes] = [`${id}.${timestamp}.`, body].map((one) =>
    typeof one === 'string' ? new TextEncoder().encode(one) : one,
  ) as [Uint8Array, Uint8Array];
  const all = new Uint8Array(head.length + bytes.length);
  all.set(head);
  all.set(bytes, head.length);
  return all;
}

/** Returns the headers that sign a body by Standard Webhooks, as of now. `id` identifies the message over attempts. */
export async function sign(
  body: string | Uint8Array,
  secret: string,
  id: string = `msg_${crypto.randomUUID()}`,
): Promise<SignatureHeaders> {
  const timestamp = String(Math.floor(Date.now() / 1000));
  const signature = await crypto.subtle.sign('HMAC', await keyOf(secret), signedBytes(id, timestamp, body));
  const base64 = btoa(String.fromCharCode(...new Uint8Array(signature)));
  return { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': `v1,${base64}` };
}

/**
 * Resolves with whether a body is signed by one of the secrets (Standard Webhooks): one of the signatures in the headers is
 * enough, and their time is at most 300 s off. Compares in constant time.
 * @param body the bytes as they were received
 * @throws TypeError for a secret that is none.
 */
export async function verify(
  body: string | Uint8Array,
  headers: Headers | Readonly<Record<string, string | readonly string[] | undefined>>,
  secrets: string | readonly string[],
): Promise<boolean> {
  const keys = await Promise.all([secrets].flat().map((secret) => keyOf(secret)));
  const all = headers instanceof Headers ? [...headers] : Object.entries(headers);
  const byName = Object.fromEntries(all.map(([name, value]) => [name.toLowerCase(), value]));
  const { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signatures } = byName;
  if (typeof id !== 'string' || typeof timestamp !== 'string' || typeof signatures !== 'string') return false;
  if (id === '' || !/^\d+$/.test(timestamp)) return false;
  if (Math.abs(Math.floor(Date.now() / 1000) - Number(timestamp)) > TOLERANCE_S) return false;
  const sent = signatures.split(' ').map((text) => bytesIn(/^v1,(.+)$/.exec(text)?.[1] ?? '') ?? new Uint8Array());
  const bytes = signedBytes(id, timestamp, body);
  const matches = sent.flatMap((signature) => keys.map((key) => crypto.subtle.verify('HMAC', key, signature, bytes)));
  return (await Promise.all(matches)).includes(true);
}
