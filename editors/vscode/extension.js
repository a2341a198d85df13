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

/** Runs `treesens check` on the file of the active editor, as a task: no shell reads the name of the file. */
async function check() {
  const editor = vscode.window.activeTextEditor;
  if (editor === undefined || editor.document.languageId !== "sens") {
    vscode.window.showInformationMessage("Open a .sens file first.");
    return;
  }
  await editor.document.save();
  const run = new vscode.ProcessExecution(server().command, ["check", editor.document.uri.fsPath]);
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
