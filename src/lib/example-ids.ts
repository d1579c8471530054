/** The ids of the examples, by their names in a demo, whose own ids stand in their place where there is one. */
export const IDS = {
  node_id: '2e8b6d10-7f4c-4a93-9d52-c05a1b3e7f68',
  wallet_id: '0b5d3f0e-58f2-4c55-9e6b-3a3c9ad0c9b1',
  target_wallet_id: '9a1c5e73-64d8-4b20-8f3e-d7b2c6a09451',
  network_id: 'c4b7e6a2-0d38-4f7c-8a11-6f2e9b35d0e4',
  network_currency_id: '7d9f1c34-2a6b-4e58-b0c7-91e3f8a5d276',
  asset_id: '3c5e7a91-b2d4-4f68-9a0c-1e3d5b7f9a2c',
};
