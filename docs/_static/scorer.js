// Ranks results of the search: what one does and what was measured come before reference pages.
// The other numbers are Sphinx's own.
var Scorer = {
  score: ([page, title, anchor, description, score]) =>
    score + (page.startsWith("howto/") ? 12 : page.startsWith("studies/") ? 10 : 0),
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
