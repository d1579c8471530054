import { once } from 'node:events';
import { expect, it } from 'vitest';
import { openSocket } from '../support/graphql/sockets.ts';
import { useStand } from '../support/graphql/stand.ts';

const FORTY = '1234567890123456789012345678901234567890';
const ID = 'aaaaaaaa-0000-4000-8000-00000000000a';
const QUERY = `query ($input: PreviewWalletRuleInput!) {
  previewWalletRule(input: $input) { explanation { expected actual } }
}`;
/** With a number of the JSON text where a double has no place for it. */
const VARIABLES = JSON.stringify({
  input: {
    rule: {
      name: 'x',
      type: 'auto_transfer',
      networkId: ID,
      networkCurrencyId: ID,
      autoTransferRule: {
        type: 'auto',
        amount: 1,
        targetWalletId: ID,
        ruleLogic: { field: 'balance', op: '<', value: 'EXPECTED', network_currency_id: ID },
      },
    },
    balances: [{ field: 'balance', networkCurrencyId: ID, value: 'ACTUAL' }],
  },
})
  .replace('"EXPECTED"', `${FORTY}.5`)
  .replace('"ACTUAL"', `-0.${FORTY}`);
const EXACT = {
  data: { previewWalletRule: { explanation: [{ expected: `${FORTY}.5`, actual: `-0.${FORTY}` }] } },
};

const stand = useStand();

it('DG-07 D5-03: no digit of a number is lost in the variables of a GET', async () => {
  const parameters = new URLSearchParams({ query: QUERY, variables: VARIABLES });
  const { text } = await stand.fetch({ headers: { authorization: `Bearer ${stand.token}` } }, `?${parameters}`);
  expect(JSON.parse(text)).toEqual(EXACT);
});

it('DG-07 D5-03: no digit of a number is lost in the variables of an operation on a socket', async () => {
  using opened = await openSocket(stand, stand.token);
  const { socket } = opened;
  const payload = `{"query":${JSON.stringify(QUERY)},"variables":${VARIABLES}}`;
  socket.send(`{"type":"subscribe","id":"1","payload":${payload}}`);
  const [data] = await once(socket, 'message');
  expect(JSON.parse(String(data))).toEqual({ type: 'next', id: '1', payload: EXACT });
});
