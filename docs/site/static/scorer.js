// Pages of the lab, which are mostly tables, come after the pages that explain.
var Scorer = {
  score: function (result) {
    const lab = /^(harness\/lab\/docs|findings)\//.test(result[0]) || result[0] === "CHANGELOG";
    return lab ? result[4] / 10 : result[4];
  },
  objNameMatch: 11,
  objPartialMatch: 6,
  objPrio: { 0: 15, 1: 5, 2: -5 },
  objPrioDefault: 0,
  title: 15,
  partialTitle: 7,
  term: 5,
  partialTerm: 2,
};
