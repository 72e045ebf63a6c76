"""The keys of a question: A, D, E press its buttons, Shift+Enter sends fields, Escape goes back.

Why: ipywidgets has no key handler, and JupyterLab takes letters for itself while a button has the
focus (A inserts a cell, D D deletes this one).

How: an HTML widget is not sanitised in a live view, so an image in it can add listeners to the form
around it. While the form has the focus, a listener at the window gets each key before JupyterLab,
and before the text areas, which pass no key on. Where a front end forbids such a handler, Tab,
Space and Enter still reach and press every button.

Rules
- The HTML is a constant, with no text from a model.
- Letters act while a button of the form has the focus: not while a field has it, not with Shift,
  Ctrl, Alt or Meta, not as repeats of a held key. A click beside the buttons gives no focus.
- Enter alone also sends the reason of a denial.
- A field sends its value when it loses the focus, so a key takes the focus away before it presses.
- Only a press moves the focus: to controls that it opened or brought back, or, after an answer, to
  the cell, so that a second press does not answer the next question.
"""

from __future__ import annotations

FORM = "agent-nb-form"
ACTION = "agent-nb-do-"  # with the action of a button after it, a CSS class of the button
_PIXEL = "data:image/gif;base64,R0lGODlhAQABAAAAACH5BAEKAAEALAAAAAABAAEAAAICTAEAOw=="
_SCRIPT = f"""
const form=this.closest('.{FORM}');if(form&&!form.keys){{form.keys=true;
const text='textarea,input[type=text]',named=(...names)=>names.map(n=>'.{ACTION}'+n+':enabled').join();
let next='';const lost=()=>document.activeElement===document.body,go=()=>{{if(next&&lost())form.querySelector(next)?.focus()}};
const press=(...names)=>{{const b=form.querySelector(named(...names));
 if(b){{document.activeElement.blur();b.click()}}return b}};
const on=e=>{{if(!form.contains(e.target)){{window.removeEventListener('keydown',on,true);return}}
 const key=e.key.toLowerCase(),field=e.target.matches('textarea,input,select');let b=null;
 if(e.repeat||e.isComposing||e.ctrlKey||e.altKey||e.metaKey)return;
 if(key==='escape')b=press('back');
 else if(key==='enter'&&field&&(e.shiftKey||e.target.matches('.agent-nb-line input')))b=press('submit','deny')||e.shiftKey;
 else if(!field&&!e.shiftKey)b={{a:'approve',d:'refuse',e:'edit'}}[key],b=b&&press(b);
 if(b){{e.preventDefault();e.stopPropagation()}}}};
form.addEventListener('focusin',e=>{{if(!e.target.matches(text))e.target.dataset.lmSuppressShortcuts='true';
 window.addEventListener('keydown',on,true)}});
form.addEventListener('click',e=>{{const b=e.target.closest('button');if(!b)return;
 next=b.matches(named('back'))?named('approve'):b.matches(named('always'))?named('approve_same')
  :b.matches(named('edit','refuse','submit'))?text:'';
 const cell=form.closest('.jp-Cell');let left=40;const timer=setInterval(()=>{{go();if(form.isConnected&&left--)return;
  clearInterval(timer);next='';if(!form.isConnected&&lost())cell?.focus()}},50)}});
new MutationObserver(go).observe(form,{{childList:true,subtree:true,attributes:true,attributeFilter:['disabled']}});
}}"""
KEYS = f'<img alt="" src="{_PIXEL}" onload="{_SCRIPT}">'
