import { expect, it } from 'vitest';
import { redirectionOf, topologyOf } from '../../src/platform/cache/redis-topology.rules.ts';

const ASKED = 'rediss://user:secret@seed.internal:6379';
it('what stands in the URL but the address holds for every server of the cluster', () => {
  const slots = [
    [0, 99, ['10.0.0.1', 7001, 'aaa']],
    [100, 16_383, ['b.internal', 7002, 'bbb'], ['10.0.0.3', 7003, 'ccc']],
  ];
  expect(topologyOf(slots, ASKED)).toEqual({
    ranges: [
      { first: 0, last: 99, url: 'rediss://user:secret@10.0.0.1:7001' },
      { first: 100, last: 16_383, url: 'rediss://user:secret@b.internal:7002' },
    ],
    members: [
      'rediss://user:secret@10.0.0.1:7001',
      'rediss://user:secret@b.internal:7002',
      'rediss://user:secret@10.0.0.3:7003',
    ],
  });
});

it.each([
  ['none, as of one that does not know it', '', 'seed.internal:7001'],
  ['none, as of one that is set to tell none', null, 'seed.internal:7001'],
  ['one that is not known yet', '?', 'seed.internal:7001'],
  ['a name', 'a.internal', 'a.internal:7001'],
  ['IPv6', '2001:db8::1', '[2001:db8::1]:7001'],
])('the address of a server: %s', (_, host, address) => {
  const { members } = topologyOf([[0, 16_383, [host, 7001, 'aaa']]], ASKED);
  expect(members).toEqual([`rediss://user:secret@${address}`]);
});

it.each([[[]], [null], ['OK']])('a server that was put out of its cluster tells of nobody: %j', (slots) => {
  expect(topologyOf(slots, ASKED)).toEqual({ ranges: [], members: [] });
});

it.each([
  ['MOVED 3999 10.0.0.1:7001', { kind: 'moved' }],
  ['ASK 3999 10.0.0.1:7001', { kind: 'ask', url: 'rediss://user:secret@10.0.0.1:7001' }],
  ['ASK 3999 2001:db8::1:7001', { kind: 'ask', url: 'rediss://user:secret@[2001:db8::1]:7001' }],
  ['ASK 3999 :7001', { kind: 'ask', url: 'rediss://user:secret@seed.internal:7001' }],
  ['TRYAGAIN Multiple keys request during rehashing of slot', { kind: 'incomplete' }],
  ['CLUSTERDOWN Hash slot not served', { kind: 'down' }],
  ['ERR value is not an integer or out of range', undefined],
  ['', undefined],
])('what a server says of a slot: %s', (message, expected) => {
  expect(redirectionOf(message, ASKED)).toEqual(expected);
});
