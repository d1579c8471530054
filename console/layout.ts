import { signal } from '@preact/signals';
import { useEffect, useLayoutEffect, useRef, useState } from 'preact/hooks';
import { html } from './html.ts';
import { Icon } from './kit/icons.ts';
import { Toasts } from './kit/overlay.ts';
import { FailureBox, Guarded, Page, Skeleton, useAction } from './kit/page.ts';
import { Id, words } from './kit/text.ts';
import { theme, zone } from './remembered.ts';
import { go, leave, linkTo, place } from './router.ts';
import { signOut, viewer } from './session.ts';
import { firstView, GROUPS, type View, type ViewModule, viewAt } from './views.ts';

/** The navigation, and the view that the address names. */
export function Layout() {
  const permissions = viewer.value?.permissions ?? [];
  const { parts } = place.value;
  const view = parts.length === 0 ? firstView(permissions) : viewAt(parts);
  const skip = (event: Event) => {
    event.preventDefault();
    document.querySelector('h1')?.focus();
  };
  return html`<a class="skip" href="#content" onClick=${skip}>Skip to content</a>
    <header class="bar"><button type="button" class="quiet" popovertarget="side" aria-label="Menu"><${Icon} name="menu" /></button><${Brand} /></header>
    <${Side} current=${view?.under ?? view?.path} permissions=${permissions} />
    <div class="view">${
      view
        ? html`<${Guarded} key=${view.path} title=${view.title} needs=${view.needs}><${Loaded} view=${view} parts=${parts.slice(1)} /><//>`
        : html`<${NotFound} />`
    }</div>
    <${Finder} permissions=${permissions} />
    <${Toasts} />`;
}

const isFinding = signal(false);

/** Opens the search over everything with Ctrl K or ⌘ K; its module is loaded with the first one. */
function Finder({ permissions }: { permissions: readonly string[] }) {
  const [module, setModule] = useState<typeof import('./palette.ts')>();
  useEffect(() => {
    const press = (event: KeyboardEvent) => {
      if (event.key.toLowerCase() !== 'k' || !(event.ctrlKey || event.metaKey) || event.shiftKey || event.altKey) return;
      event.preventDefault();
      isFinding.value = !isFinding.value;
    };
    addEventListener('keydown', press);
    return () => {
      removeEventListener('keydown', press);
      isFinding.value = false;
    };
  }, []);
  // Before the new view is seen: who then presses the keys opens it again.
  useLayoutEffect(() => {
    isFinding.value = false;
  }, [place.value]);
  useEffect(() => {
    if (isFinding.value && !module) void import('./palette.ts').then(setModule, () => undefined);
  }, [isFinding.value]);
  return isFinding.value && module && html`<${module.Palette} permissions=${permissions} onClose=${() => (isFinding.value = false)} />`;
}

function Loaded({ view, parts }: { view: View; parts: string[] }) {
  const [module, setModule] = useState<ViewModule>();
  const { run, failure } = useAction();
  useEffect(() => void run(async () => setModule(await view.load())), []);
  // Firefox does not request a module again that could not be loaded, until the page is reloaded.
  const again = () => void run(() => view.load().then(setModule, () => fetch('').then(({ ok }) => (ok ? location.reload() : Promise.reject(new TypeError())))));
  if (module) return module.show(...parts) ?? html`<${NotFound} />`;
  return html`<${Page} title=${view.title}>${failure ? html`<${FailureBox} failure=${failure} retry=${again} />` : html`<${Skeleton} />`}<//>`;
}

function Brand() {
  return html`<span class="brand"><img src="icon.svg" alt="" width="24" height="24" />Portcullis</span>`;
}

/** The navigation: at the side where there is room, otherwise above the view while it is open. */
function Side({ current, permissions }: { current: string | undefined; permissions: readonly string[] }) {
  const side = useRef<HTMLElement>(null);
  const isShown = ({ needs }: View) => needs.every((permission) => permissions.includes(permission));
  useEffect(() => {
    if (side.current?.matches(':popover-open')) side.current.hidePopover();
  }, [place.value]);
  return html`<aside class="side" id="side" aria-label="Navigation" popover ref=${side}>
    <${Brand} />
    <button type="button" class="find" onClick=${() => (isFinding.value = true)}><${Icon} name="search" /><span>Find</span><kbd>Ctrl K</kbd></button>
    <nav aria-label="Main">${Object.entries(GROUPS).map(([title, views]) => {
      const shown = views.filter(isShown);
      return (
        shown.length > 0 &&
        html`${title && html`<h2>${title}</h2>`}<ul>${shown.map(
          ({ path, title, icon }) =>
            html`<li><a href=${linkTo([path])} aria-current=${path === current ? 'page' : undefined}><${Icon} name=${icon} />${title}</a></li>`,
        )}</ul>`
      );
    })}</nav>
    <${Account} />
  </aside>`;
}

/** Who is signed in, what they have chosen for this browser, and the way out. */
function Account() {
  const { subject, username, clientId, tokenUse, nodeId, tenantName, permissions = [] } = viewer.value ?? {};
  const role = tokenUse === 'login' ? ROLES.find(([needed]) => needed === '' || permissions.includes(needed))?.[1] : undefined;
  const choice = (name: string, of: { value: string }, options: Readonly<Record<string, string>>) =>
    html`<fieldset class="segments"><legend>${name}</legend>${Object.entries(options).map(
      ([value, text]) => html`<label><input type="radio" name=${name} checked=${of.value === value} onChange=${() => (of.value = value)} />${text}</label>`,
    )}</fieldset>`;
  const out = () =>
    leave(() => {
      signOut();
      go('#/', { replaces: true });
    });
  // Choosing a button or a link of the menu closes it.
  const chosen = ({ target, currentTarget }: Event) =>
    target instanceof Element && target.closest('a, .menu > button') && (currentTarget as HTMLElement).hidePopover();
  const name = username ?? (tokenUse === 'api' ? 'API client' : 'Supervisor');
  const id = (what: string, value: string | null | undefined) => html`<div><dt>${what}</dt><dd><${Id} id=${value} /></dd></div>`;
  return html`<button type="button" class="opener" popovertarget="account" aria-haspopup="true" title="Account">
    <${Icon} name="person" /><span>${name}<small>${tenantName}</small></span><${Icon} name="chevron" /></button>
  <div class="menu" id="account" popover onClick=${chosen}>
    <p><b>${name}</b>${tenantName && html`<br />${tenantName}`}${role && html`<br /><span class="muted">${words(role)}</span>`}</p>
    <details><summary>Ids</summary><dl>${id('Person or client', subject)}${id('Signed in by', clientId)}${id('Tenant', nodeId)}</dl></details>
    <a href=${linkTo(['profile'])}>My password and sessions</a>
    ${choice('Times', zone, { local: 'Local', utc: 'UTC' })}
    ${choice('Theme', theme, { system: 'System', light: 'Light', dark: 'Dark' })}
    <button type="button" onClick=${out}>Sign out</button>
  </div>`;
}

/** The roles, by a permission that those below lack. */
const ROLES = [
  ['clients:manage', 'admin'],
  ['wallet-rules:write', 'operator'],
  ['', 'viewer'],
] as const;

function NotFound() {
  return html`<${Page} title="Page not found"><p>This address leads nowhere. <a href="#/">Go to the first page</a>, or choose one in the menu.</p><//>`;
}
