// Posts the page of a run as one comment of its pull request, and puts the next one in its place.
module.exports = async ({github, context, core}, file) => {
  const fs = require('fs');
  // As long as a comment may be. The request's code wrote it: nobody is called, and no HTML or picture is shown.
  const text = fs.readFileSync(file, 'utf8').slice(0, 60000);
  const [mark] = text.match(/^<!-- executorch-goldens: (?:summary|compare) -->/) ?? [];
  if (!mark) throw new Error(`${file} is not what goldens merge or compare prints with --markdown`);
  const plain = text.slice(mark.length).replace(/</g, '&lt;').replace(/@(?!\u200b)/g, '@\u200b').replace(/!\[/g, '!\\[')
    // What folds a list up.
    .replace(/^&lt;(\/?details|details open)>$/gm, '<$1>').replace(/^&lt;summary>(.*)&lt;\/summary>$/gm, '<summary>$1</summary>');
  const body = (mark + plain).slice(0, 65000);
  const {pull_request: own, workflow_run: run} = context.payload;
  // A request from a fork is not among the run's. Its commit may be that of other requests too.
  const open = own ? [] : await github.paginate(github.rest.pulls.list, {...context.repo, state: 'open'});
  const request = own ?? open.find(({head}) => head.sha === run.head_sha && head.ref === run.head_branch
    && head.repo?.full_name === run.head_repository?.full_name);
  if (!request) return core.info('the request is closed, or has a newer commit');
  const all = await github.paginate(github.rest.issues.listComments, {...context.repo, issue_number: request.number});
  const before = all.find((each) => each.user.type === 'Bot' && each.body.startsWith(mark));
  if (before) await github.rest.issues.updateComment({...context.repo, comment_id: before.id, body});
  else await github.rest.issues.createComment({...context.repo, issue_number: request.number, body});
};
