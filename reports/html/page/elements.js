// @ts-check
// Elements that the parts of a page make, and the button that copies a text.

export const SVG = "http://www.w3.org/2000/svg";

export function element(tag, properties = {}, ...children) {
  const made = Object.assign(document.createElement(tag), properties);
  made.append(...children);
  return made;
}

export function atTop(made, top) {
  made.style.top = `${top}px`;
  return made;
}

export function svgShape(name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

export async function copy(button, text) {
  try {
    await navigator.clipboard.writeText(text);
  } catch {
    const area = document.createElement("textarea");
    area.value = text;
    document.body.append(area);
    area.select();
    document.execCommand("copy");
    area.remove();
  }
  document.body.dataset.copied = text;
  button.dataset.label ||= button.textContent;
  button.textContent = "copied";
  setTimeout(() => (button.textContent = button.dataset.label), 1200);
}
