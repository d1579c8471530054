import { join } from 'node:path';
import { type Browser, type BrowserContext, type BrowserContextOptions, chromium, type Page } from 'playwright-core';
import { serviceAddress } from '../services/real.ts';
import { PATIENCE_MS } from './deadlines.ts';

const VIEWPORT = { width: 1280, height: 800 };

/**
 * What the window around a page would do for itself: each renders its address bar in a process of its own, which takes
 * more CPU than a view of the console. The list replaces that of Playwright, which is its first part.
 */
const WITHOUT = [
  ...['AvoidUnnecessaryBeforeUnloadCheckSync', 'DestroyProfileOnBrowserClose', 'HttpsUpgrades', 'LensOverlay'],
  ...['HttpsFirstBalancedModeAutoEnable', 'MediaRouter', 'PaintHolding', 'ThirdPartyStoragePartitioning'],
  ...['AvoidCorsURLLoaderRestartOnRedirect', 'OptimizationHints', 'NetworkTimeServiceQuerying', 'AimEnabled'],
  'PreconnectToSearch',
  ...['WebUIOmniboxPopup', 'WebUIOmniboxAimPopup'],
];

/** It asks nobody for anything of its own, and runs as root too. */
const ARGUMENTS = [
  '--headless=new',
  '--no-sandbox',
  '--disable-gpu',
  '--disable-software-rasterizer',
  '--disable-quic',
  '--no-first-run',
  '--disable-background-networking',
  '--disable-component-update',
  '--disable-sync',
  `--disable-features=${WITHOUT}`,
];

/** A page as a user has it open, with a profile of its own and a clipboard. */
export interface OpenPage extends AsyncDisposable {
  page: Page;
  /** All that was asked for, `blob:` and `data:` included, which have the origin of their maker and none. */
  requests: URL[];
  /** What a user would find in the console: errors, warnings, violations of the page's policy. */
  complaints: string[];
  /** How often a document was loaded into it. */
  loads(): number;
  /** Forgets what was asked and complained of so far. */
  forget(): void;
}

let running: Promise<Browser> | undefined;

/** The system's Chromium without a window: one for all files of a process, with which it ends, as its start takes more CPU than most cases. */
export function theBrowser(): Promise<Browser> {
  running ??= startBrowser();
  return running;
}

async function startBrowser(): Promise<Browser> {
  try {
    const browser = await chromium.launch({ executablePath: serviceAddress('chromium'), args: ARGUMENTS });
    return browser.on('disconnected', () => {
      running = undefined;
    });
  } catch (error) {
    running = undefined;
    throw error;
  }
}

/** Opens a page of an instance, for somebody who wants it still unless told otherwise, and resolves once it is loaded. */
export async function openPage(origin: string, path: string, options: BrowserContextOptions = {}): Promise<OpenPage> {
  const context = await (await theBrowser()).newContext({ viewport: VIEWPORT, reducedMotion: 'reduce', ...options });
  context.setDefaultTimeout(PATIENCE_MS);
  await context.grantPermissions(['clipboard-read', 'clipboard-write'], { origin });
  const open = await openTab(context, `${origin}${path}`);
  return { ...open, [Symbol.asyncDispose]: () => context.close() };
}

/** Opens another tab of a profile, and resolves once its page is loaded. */
export async function openTab(context: BrowserContext, url: string): Promise<OpenPage> {
  const page = await context.newPage();
  const seen = watch(page);
  let loads = 0;
  page.on('domcontentloaded', () => {
    loads += 1;
  });
  await page.goto(url);
  const forget = () => {
    seen.requests.length = 0;
    seen.complaints.length = 0;
  };
  return { page, ...seen, loads: () => loads, forget, [Symbol.asyncDispose]: () => page.close() };
}

/** Pastes text where the cursor is, by the clipboard. */
export async function paste(page: Page, text: string): Promise<void> {
  await page.evaluate(`navigator.clipboard.writeText(${JSON.stringify(text)})`);
  await page.keyboard.press('ControlOrMeta+V');
}

/** Takes a picture of a page into `docs`, where `UPDATE_SCREENSHOT=1` asks for it. */
export async function takePicture(page: Page, name: string, height = VIEWPORT.height): Promise<void> {
  if (process.env.UPDATE_SCREENSHOT !== '1') return;
  await page.setViewportSize({ ...VIEWPORT, height });
  await page.evaluate('document.activeElement?.blur()');
  await page.mouse.move(0, 0);
  await page.screenshot({ path: join(import.meta.dirname, `../../../docs/${name}.png`) });
  await page.setViewportSize(VIEWPORT);
}

function watch(page: Page): Pick<OpenPage, 'requests' | 'complaints'> {
  const requests: URL[] = [];
  const complaints: string[] = [];
  page.on('request', (request) => requests.push(new URL(request.url())));
  page.on('console', (message) => {
    if (['error', 'warning'].includes(message.type())) complaints.push(message.text());
  });
  page.on('pageerror', (error) => complaints.push(String(error)));
  return { requests, complaints };
}
