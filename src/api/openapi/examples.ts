/** The client credentials of the examples. */
export const CLIENT = {
  client_id: '5f0a3c7e-9f43-4d0f-8a9e-4e7b1f8d2c61',
  client_secret: 'q3Jm7Yk0pXw2Zc9Rb5Tn8Vd1Hs4Lf6Ga0Ke2Uo7Ii9M',
};

/** Tokens of the right form, with invented signatures. */
export const JWT = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJleGFtcGxlIn0.c2lnbmF0dXJl';
export const REFRESH_JWT = 'eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJyZWZyZXNoIn0.c2lnbmF0dXJl';

/** The ids of the examples, by their names in a demo, whose own ids stand in their place where there is one. */
export const IDS = {
  node_id: '2e8b6d10-7f4c-4a93-9d52-c05a1b3e7f68',
  wallet_id: '0b5d3f0e-58f2-4c55-9e6b-3a3c9ad0c9b1',
  target_wallet_id: '9a1c5e73-64d8-4b20-8f3e-d7b2c6a09451',
  network_id: 'c4b7e6a2-0d38-4f7c-8a11-6f2e9b35d0e4',
  network_currency_id: '7d9f1c34-2a6b-4e58-b0c7-91e3f8a5d276',
  asset_id: '3c5e7a91-b2d4-4f68-9a0c-1e3d5b7f9a2c',
};

export const AUTO_TRANSFER = {
  name: 'Top up the hot wallet',
  type: 'auto_transfer',
  network_id: IDS.network_id,
  network_currency_id: IDS.network_currency_id,
  priority: 10,
  auto_transfer_rule: {
    type: 'auto_with_approve',
    rule_logic: { field: 'target.balance', op: 'lt', value: 100, network_currency_id: IDS.network_currency_id },
    amount: 250.5,
    target_wallet_id: IDS.target_wallet_id,
  },
  sign_and_approve_rule: { min_priority: 1, max_priority: 50, min_user_count: 2 },
};

export const TRANSFER_LIMIT = {
  name: 'At most 1000 a day',
  type: 'permissionless_transfer_limit',
  network_id: IDS.network_id,
  network_currency_id: IDS.network_currency_id,
  permissionless_transfer_limit_rule: { max_amount: 1000, time_period: 'day', time_period_value: 1 },
};

/** A rule whose conditions are combined by `or` and `not`. */
export const GROUPED = {
  ...AUTO_TRANSFER,
  auto_transfer_rule: {
    ...AUTO_TRANSFER.auto_transfer_rule,
    rule_logic: {
      or: [
        AUTO_TRANSFER.auto_transfer_rule.rule_logic,
        { not: { field: 'source.balance', op: '>=', value: 1000, network_currency_id: IDS.network_currency_id } },
      ],
    },
  },
};

export const NOTIFICATION = {
  id: '6f1d2b7c-3e94-4c08-a5d1-0b9e8f7a6c35',
  type: 1,
  status: 3,
  transaction_hash: '0x8f2a4c6e0b1d3f5a7c9e8d6b4a2f0e1c3d5b7a9f8e6c4d2b0a1f3e5d7c9b8a6f',
  contract_address: '',
  gas_used: 21000,
  error: null,
  created_at: '2026-11-21T10:30:00Z',
  updated_at: '2026-11-21T10:31:12Z',
};

export const USER = {
  wallet_address: '0xAbC1230000000000000000000000000000000456',
  email: 'ada@example.com',
  external_id: 'crm-4711',
  name: 'Ada',
  surname: 'Lovelace',
  kyc_sent: true,
};

export const MIGRATED = {
  id: '0193501f-2c1f-7c0a-9c4e-5b1f3a0d7e11',
  external_id: 'crm-4711',
  name: 'Ada',
  surname: 'Lovelace',
  email: 'ada@example.com',
  address: '0xabc1230000000000000000000000000000000456',
  identity_number: '',
  kyc: { is_verified: true, token_sent: true, token_sent_at: '2026-11-21T10:30:00.000Z', token_tx_hash: null },
};
