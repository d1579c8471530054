import { describe, expect, it } from 'vitest';
import { signatureFault } from '../../src/features/webhook/webhook.rest.ts';
import { signingKey } from '../../src/platform/config/variable-forms.ts';

/** Messages whose signatures others have published, in the specification of Standard Webhooks and by its first sender. */
const PUBLISHED = [
  {
    secret: 'whsec_plJ3nmyCDGBKInavdOK15jsl',
    id: 'msg_loFOjxBNrRLzqYUf',
    timestamp: '1731705121',
    body: '{"event_type":"ping","data":{"success":true}}',
    signature: 'v1,rAvfW3dJ/X/qxhsaXPOyyCGmRKsaKWcsNccKXlIktD0=',
  },
  {
    secret: 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
    id: 'msg_p5jXN8AQM9LWM0D4loKWxJek',
    timestamp: '1614265330',
    body: '{"test": 2432232314}',
    signature: 'v1,g0hM9SsE+OTPJTGt/tmIKtSyZlE3uFJELVlNIOLJ1OE=',
  },
] as const;
const [ONE, OTHER] = PUBLISHED;
type Message = (typeof PUBLISHED)[number];

function judge(message: Message, headers: Record<string, string | undefined> = {}, offMs = 0): string | undefined {
  const { secret, id, timestamp, body, signature } = message;
  return signatureFault(
    { keys: [keyOf(secret)], isRequired: true },
    {
      headers: { 'webhook-id': id, 'webhook-timestamp': timestamp, 'webhook-signature': signature, ...headers },
      body: Buffer.from(body),
      receivedAtMs: Number(timestamp) * 1_000 + offMs,
    },
  );
}

/** One of the published secrets is shorter than the specification allows. */
function keyOf(secret: string): Buffer {
  return Buffer.from(secret.slice('whsec_'.length), 'base64');
}

describe('the signature of a notification', () => {
  it.each(PUBLISHED)('D6-15: the published signature of $id is valid', (message) => {
    expect(judge(message)).toBeUndefined();
  });

  it.each<[name: string, signature: string, fault: string | undefined]>([
    ['a wrong one before it', `${OTHER.signature} ${ONE.signature}`, undefined],
    ['one of another version before it', `v1a,${ONE.signature.slice(3)} ${ONE.signature}`, undefined],
    ['a wrong one after it', `${ONE.signature} v1,`, undefined],
    ['two spaces before it', `  ${ONE.signature}`, undefined],
    ['another', OTHER.signature, 'signature'],
    ['none', '', 'signature'],
    ['the version alone', 'v1,', 'signature'],
    ['no version', ONE.signature.slice(3), 'signature'],
    ['another version', `v2,${ONE.signature.slice(3)}`, 'signature'],
    ['a comma between two', `${OTHER.signature},${ONE.signature}`, 'signature'],
    ['no padding', ONE.signature.slice(0, -1), 'signature'],
    ['another spelling of its last bits', ONE.signature.replace('0=', '1='), 'signature'],
    ['more after it', `${ONE.signature}=`, 'signature'],
    ['its letters in another case', ONE.signature.toUpperCase(), 'signature'],
  ])('D6-15: of several signatures one valid one is enough, exactly as it was sent: %s', (_name, signature, fault) => {
    expect(judge(ONE, { 'webhook-signature': signature })).toBe(fault);
  });

  it.each<[seconds: number, ms: number, fault: string | undefined]>([
    [300, 0, undefined],
    [300, 999, undefined],
    [301, 0, 'stale'],
    [-300, 0, undefined],
    [-301, 999, 'future'],
    [-301, 0, 'future'],
    [86_400, 0, 'stale'],
    [-86_400, 0, 'future'],
  ])('D6-15 D2-31: %i s and %i ms after its timestamp the result is: %s', (seconds, ms, fault) => {
    expect(judge(ONE, {}, seconds * 1_000 + ms)).toBe(fault);
  });

  it.each(['', ' ', '1731705121.0', '+1731705121', '01731705121 ', '0x6737b3a1', '1.731705121e9', 'NaN', '-1', '٣'])(
    'D6-15: the timestamp %j is invalid, whatever was signed',
    (timestamp) =>
      expect(judge(ONE, { 'webhook-timestamp': timestamp })).toBe(timestamp === '' ? 'incomplete' : 'signature'),
  );

  it.each([
    ['webhook-id', undefined, 'incomplete'],
    ['webhook-timestamp', undefined, 'incomplete'],
    ['webhook-signature', undefined, 'incomplete'],
    ['webhook-id', '', 'incomplete'],
    ['webhook-timestamp', '', 'incomplete'],
    ['webhook-signature', '', 'signature'],
    ['webhook-id', OTHER.id, 'signature'],
    ['webhook-timestamp', '1731705122', 'signature'],
    ['webhook-timestamp', '9'.repeat(400), 'future'],
    ['webhook-timestamp', '0', 'stale'],
    // Milliseconds, where the specification has seconds.
    ['webhook-timestamp', '1731705121000', 'future'],
  ])('D6-15 D2-31: %s as %j is rejected: %s', (name, value, fault) =>
    expect(judge(ONE, { [name]: value })).toBe(fault),
  );

  it('D6-15: without signature headers a request is accepted only if no signature is required', () => {
    const message = { body: Buffer.from('{}'), receivedAtMs: 0 };
    const keys = [keyOf(ONE.secret)];
    const none = { 'content-type': 'application/json' };
    expect(signatureFault({ keys, isRequired: false }, { ...message, headers: none })).toBeUndefined();
    expect(signatureFault({ keys, isRequired: true }, { ...message, headers: none })).toBe('incomplete');
    for (const name of ['webhook-id', 'webhook-timestamp', 'webhook-signature']) {
      expect(signatureFault({ keys, isRequired: false }, { ...message, headers: { [name]: '' } })).toBe('incomplete');
    }
  });
});

describe('a signing secret', () => {
  const of = (bytes: number) => Buffer.alloc(bytes, 0xfb).toString('base64');
  it.each<[name: string, secret: string, bytes: number | undefined]>([
    ['24 bytes', `whsec_${of(24)}`, 24],
    ['64 bytes', `whsec_${of(64)}`, 64],
    ['23 bytes', `whsec_${of(23)}`, undefined],
    ['65 bytes', `whsec_${of(65)}`, undefined],
    ['no prefix', of(32), undefined],
    ['the prefix in another case', `WHSEC_${of(32)}`, undefined],
    ['the prefix of a key pair', `whsk_${of(32)}`, undefined],
    ['no padding', `whsec_${of(32).replace('=', '')}`, undefined],
    ['the alphabet of URLs', `whsec_${of(32).replaceAll('+', '-').replaceAll('/', '_')}`, undefined],
    ['a space', `whsec_ ${of(32)}`, undefined],
    ['nothing', '', undefined],
  ])('D6-15: the length in bytes, or invalid: %s', (_name, secret, bytes) =>
    expect(signingKey(secret)?.length).toBe(bytes),
  );
});
