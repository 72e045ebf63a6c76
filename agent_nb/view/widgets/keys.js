// The keys of a question (see `keys`), as the `onload` of an image (`this`) in the form.
// It is the value of an attribute in double quotes, so it has none itself.
const form = this.closest('.agent-nb-form');
if (form && !form.keys) {
  form.keys = true; // the form has its listeners, also when the image loads again
  const texts = 'textarea,input[type=text]';
  const enabled = (...actions) => actions.map(action => '.agent-nb-do-' + action + ':enabled').join();

  // Presses the first enabled button with one of the actions; returns it, or null.
  const press = (...actions) => {
    const button = form.querySelector(enabled(...actions));
    if (button) {
      document.activeElement.blur(); // a field sends its value now
      button.click();
    }
    return button;
  };

  let next = ''; // what gets the focus after a press, as a selector
  const focusLost = () => document.activeElement === document.body;
  const moveFocus = () => {
    if (next && focusLost()) form.querySelector(next)?.focus();
  };

  const takeKey = event => {
    const target = event.target;
    if (!form.contains(target)) {
      window.removeEventListener('keydown', takeKey, true);
      return;
    }
    if (event.repeat || event.isComposing || event.ctrlKey || event.altKey || event.metaKey) return;
    const key = event.key.toLowerCase();
    const inField = target.matches('textarea,input,select');
    let taken = null;
    if (key === 'escape') {
      taken = press('back');
    } else if (key === 'enter' && inField && (event.shiftKey || target.matches('.agent-nb-line input'))) {
      taken = press('submit', 'deny') || event.shiftKey;
    } else if (!inField && !event.shiftKey) {
      const action = {a: 'approve', d: 'refuse', e: 'edit'}[key];
      taken = action && press(action);
    }
    if (taken) {
      event.preventDefault();
      event.stopPropagation();
    }
  };

  form.addEventListener('focusin', event => {
    // JupyterLab leaves the keys of this element alone
    if (!event.target.matches(texts)) event.target.dataset.lmSuppressShortcuts = 'true';
    window.addEventListener('keydown', takeKey, true);
  });

  form.addEventListener('click', event => {
    const button = event.target.closest('button');
    if (!button) return;
    if (button.matches(enabled('back'))) next = enabled('approve');
    else if (button.matches(enabled('always'))) next = enabled('approve_same');
    else next = button.matches(enabled('edit', 'refuse', 'submit')) ? texts : '';
    const cell = form.closest('.jp-Cell');
    let looks = 40; // one each 50 ms, so the new controls have 2 s to appear
    const timer = setInterval(() => {
      moveFocus();
      if (form.isConnected && looks--) return;
      clearInterval(timer);
      next = '';
      if (!form.isConnected && focusLost()) cell?.focus(); // the question is answered
    }, 50);
  });
  new MutationObserver(moveFocus)
    .observe(form, {childList: true, subtree: true, attributes: true, attributeFilter: ['disabled']});
}
