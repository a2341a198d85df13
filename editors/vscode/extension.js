// The language client: it starts `treesens lsp` and shows what it says.
"use strict";

const vscode = require("vscode");
const { LanguageClient } = require("vscode-languageclient/node");

let client;

/** The command and its arguments, as the settings have them now. */
function server() {
  const settings = vscode.workspace.getConfiguration("treesens");
  const args = settings.get("trustPickle") ? ["lsp", "--trust-pickle"] : ["lsp"];
  return { command: settings.get("command") || "treesens", args };
}

async function start() {
  client = new LanguageClient("treesens", "treesens", server(), { documentSelector: [{ language: "sens" }] });
  try {
    await client.start();
  } catch (error) {
    client = undefined;
    const remedy = "install it with pip install 'treesens[lsp]', or set treesens.command to its path";
    vscode.window.showErrorMessage(`${server().command} lsp does not start (${error.message}): ${remedy}`);
  }
}

async function restart() {
  if (client !== undefined) {
    await client.stop();
  }
  await start();
}

/**
 * Runs `treesens check` as a task: no shell reads the name of the file. The lens over a question gives the address of the
 * file and the name of the question; without them it is the file of the active editor, with all its questions.
 */
async function check(address, question) {
  const document = address
    ? await vscode.workspace.openTextDocument(vscode.Uri.parse(address))
    : vscode.window.activeTextEditor && vscode.window.activeTextEditor.document;
  if (!document || document.languageId !== "sens") {
    vscode.window.showInformationMessage("Open a .sens file first.");
    return;
  }
  await document.save();
  const questions = question ? ["--", question] : [];
  const run = new vscode.ProcessExecution(server().command, ["check", document.uri.fsPath, ...questions]);
  const task = new vscode.Task({ type: "treesens" }, vscode.TaskScope.Workspace, "check", "treesens", run);
  await vscode.tasks.executeTask(task);
}

async function activate(context) {
  context.subscriptions.push(
    vscode.commands.registerCommand("treesens.check", check),
    vscode.commands.registerCommand("treesens.restart", restart),
    vscode.workspace.onDidChangeConfiguration((event) => event.affectsConfiguration("treesens") && restart()),
  );
  await start();
}

function deactivate() {
  return client === undefined ? undefined : client.stop();
}

module.exports = { activate, deactivate };
